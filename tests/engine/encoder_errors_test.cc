// Bad input: what is thrown, what the message names, and that the encoder works on.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "phasor/encoder.h"
#include "phasor/errors.h"
#include "tests/support/encoder_cases.h"
#include "tests/support/expect_close.h"
#include "tests/support/expect_error.h"

namespace phasor {
namespace {

TEST(EncoderErrorsTest, BadBatchesAreNamedAndTheEncoderStaysUsable) {
  const auto model = random_model(small_config(), 51);  // 41 ids
  Encoder encoder(model, {.threads = 2});
  const TokenIds good = {0, 40, 7};
  const Encoding expected = encoder.encode_ids(good);
  const auto expect_refused = [&](const std::vector<TokenIds>& batch,
                                  const std::vector<std::string>& words) {
    expect_error<InvalidArgument>([&] { encoder.encode_ids(batch); }, words);
    expect_same_bits(hidden_of(encoder.encode_ids(good)), expected.hidden(0), "after the error");
  };
  expect_refused({}, {"empty"});
  expect_refused({good, {}}, {"1"});
  expect_refused({good, {3, 41}}, {"41", "40", "sequence 1"});
  expect_refused({{5, -1}}, {"-1", "40"});
  expect_error<InvalidArgument>([&] { encoder.encode_ids(TokenIds{}); }, {"token"});
}

TEST(EncoderErrorsTest, NegativeThreadsAreRefused) {
  const auto model = random_model(small_config(), 51);
  expect_error<InvalidArgument>([&] { Encoder(model, {.threads = -3}); }, {"threads", "-3", "0"});
}

TEST(EncoderErrorsTest, NoModelIsRefused) {
  expect_error<InvalidArgument>([] { Encoder(std::shared_ptr<const Model>()); }, {"model", "null"});
}

TEST(EncoderErrorsTest, TablesWithoutAUsableRowAreNamedWhateverThePolicy) {
  ModelConfig config = small_config();
  config.position = {.kind = PositionKind::kLearned, .first_position = 3};
  config.max_positions = 0;  // as many rows as the file has
  const auto model = random_model(config, 54);
  Weights weights = model->weights();
  weights.position_table.shape[0] = 3;
  Encoder encoder(Model::create(config, weights, model));
  for (const auto overflow : {Overflow::kError, Overflow::kTruncate, Overflow::kWindow}) {
    expect_error<InvalidArgument>(
        [&] {
          encoder.encode_ids(TokenIds{1, 2}, {.overflow = overflow});
        },
        {"2 tokens", "ends after 0"});
  }
}

TEST(EncoderErrorsTest, CutsOfLayersThatAreNotThereAreRefused) {
  const auto model = random_model(small_config(), 51);
  Encoder encoder(model);
  for (const int64_t layer : {2, -1}) {
    expect_error<InvalidArgument>(
        [&] { encoder.encode_ids(TokenIds{1}, {.cut_residuals = {{.layer = layer}}}); },
        {std::to_string(layer), "0 to 1"});
  }
  EXPECT_EQ(encoder.encode_ids(TokenIds{1}).num_tokens(0), 1);
}

TEST(EncoderErrorsTest, TextsWithoutATokenizerAreAModelError) {
  const auto model = random_model(small_config(), 51);
  Encoder encoder(model);
  expect_error<ModelError>([&] { encoder.encode("Tom bit a dog."); }, {"tokenizer"});
  EXPECT_EQ(encoder.encode_ids(TokenIds{1}).num_tokens(0), 1);
}

TEST(EncoderErrorsTest, LogitsWithoutAHeadAreAModelError) {
  const auto model = random_model(small_config(), 51);
  Encoder encoder(model);
  expect_error<ModelError>([&] { encoder.mlm_logits(std::vector<float>(15)); }, {"head", "random"});
}

TEST(EncoderErrorsTest, LogitsOfHalfAHiddenStateAreRefused) {
  const auto model = random_model(small_config(), 51, {.mlm_head = true});
  Encoder encoder(model);
  expect_error<InvalidArgument>([&] { encoder.mlm_logits(std::vector<float>(16)); }, {"16", "15"});
  EXPECT_TRUE(encoder.mlm_logits({}).empty());
}

TEST(EncoderErrorsTest, AskingForASequenceThatIsNotThereThrowsInsteadOfReadingOutside) {
  const auto model = random_model(small_config(), 51);
  const Encoding encoding = Encoder(model).encode_ids(TokenIds{1, 2}, {.pooling = Pooling()});
  for (const int64_t i : {-1, 1}) {
    EXPECT_THROW(encoding.hidden(i), std::out_of_range);
    EXPECT_THROW(encoding.embedding(i), std::out_of_range);
  }
}

/// `model` with one value of one tensor replaced.
template <typename Choose>
std::shared_ptr<const Model> spoiled(const Model& model, Choose choose, int64_t element,
                                     float value) {
  Weights weights = model.weights();
  Tensor& tensor = choose(weights);
  const auto values = std::make_shared<std::vector<float>>(tensor.to_float());
  values->at(element) = value;
  tensor.data = reinterpret_cast<const std::byte*>(values->data());
  return Model::create(model.config(), weights, values);
}

TEST(EncoderErrorsTest, NaNAndInfiniteWeightsAreAModelErrorThatNamesTheTensor) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  ModelConfig config = small_config();
  config.final_norm = true;
  config.embedding_norm = true;
  config.position.kind = PositionKind::kLearned;
  for (const auto activation : {Activation::kGeluErf, Activation::kRelu}) {
    for (const auto order : {NormOrder::kPreNorm, NormOrder::kPostNorm}) {
      SCOPED_TRACE(std::string(to_string(activation)) + " " + std::string(to_string(order)));
      config.activation = activation;
      config.norm_order = order;
      const auto model = random_model(config, 52);
      const auto expect_blamed = [&](auto choose, float value,
                                     const std::vector<std::string>& words) {
        const auto bad = spoiled(*model, choose, 1, value);
        expect_error<ModelError>([&] { Encoder(bad).encode_ids(TokenIds{0, 1, 2}); }, words);
      };
      expect_blamed([](Weights& w) -> Tensor& { return w.token_embedding; }, kNaN,
                    {"token embedding", "nan", "1"});
      expect_blamed([](Weights& w) -> Tensor& { return w.position_table; }, kInfinity,
                    {"position", "inf"});
      expect_blamed([](Weights& w) -> Tensor& { return w.embedding_norm.bias; }, kNaN,
                    {"embedding norm", "bias", "nan"});
      expect_blamed([](Weights& w) -> Tensor& { return w.blocks[0].q.weight; }, kNaN,
                    {"block 0", "q", "weight", "nan"});
      expect_blamed([](Weights& w) -> Tensor& { return w.blocks[1].up.weight; }, kNaN,
                    {"block 1", "up", "weight", "nan"});
      expect_blamed([](Weights& w) -> Tensor& { return w.blocks[1].up.bias; }, kNaN,
                    {"block 1", "up", "bias", "nan"});
      expect_blamed([](Weights& w) -> Tensor& { return w.blocks[1].down.bias; }, -kInfinity,
                    {"block 1", "down", "bias", "-inf"});
      expect_blamed([](Weights& w) -> Tensor& { return w.final_norm.weight; }, kNaN,
                    {"final norm", "weight", "nan"});
    }
  }
}

TEST(EncoderErrorsTest, NaNInTheHeadIsAModelErrorWhereTheHeadIsUsed) {
  const auto model = random_model(small_config(), 55, {.mlm_head = true});
  const auto bad = spoiled(
      *model, [](Weights& w) -> Tensor& { return w.mlm_head->dense.weight; }, 2,
      std::numeric_limits<float>::quiet_NaN());
  Encoder encoder(bad);
  const Encoding encoding = encoder.encode_ids(TokenIds{1});
  expect_error<ModelError>([&] { encoder.mlm_logits(encoding.hidden(0)); },
                           {"MLM head dense weight", "nan", "element 2"});
}

TEST(EncoderErrorsTest, AHeadThatMakesNoFiniteScoresIsAModelError) {
  const auto model = random_model(small_config(), 56, {.mlm_head = true});
  const float most = std::numeric_limits<float>::max();
  Encoder encoder(spoiled(
      *model, [](Weights& w) -> Tensor& { return w.mlm_head->dense.weight; }, 2, most));
  std::vector<float> hidden(15, most);
  expect_error<ModelError>([&] { encoder.mlm_logits(hidden); }, {"masked-language-model head"});
  hidden[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(encoder.mlm_logits(hidden)[0]));  // the caller's
}

TEST(EncoderErrorsTest, NaNPositionsAreTheCallersFault) {
  const auto model = random_model(small_config(), 53);
  Encoder encoder(model);
  std::vector<float> values(2 * 15, 1.0f);
  values[20] = std::nanf("");
  const Positions positions =
      Positions::table({.rows = 2, .d_model = 15, .values = std::move(values)});
  expect_error<InvalidArgument>(
      [&] {
        encoder.encode_ids(TokenIds{1, 2}, {.positions = positions});
      },
      {"position"});
  EXPECT_EQ(encoder.encode_ids(TokenIds{1, 2}).num_tokens(0), 2);
}

}  // namespace
}  // namespace phasor
