// Bad input: what is thrown, what the message names, and that the encoder works on.
#include "tests/support/encoder_cases.h"

namespace phasor {
namespace {

TEST(EncoderErrorsTest, BadCallsAreNamedAndTheEncoderStaysUsable) {
  const auto model = random_model(small_config(), 51, {.mlm_head = true});  // 41 ids
  const auto headless = random_model(small_config(), 51);
  Encoder encoder(model, {.threads = 2}), other(headless);
  const TokenIds good = {0, 40, 7};
  const std::vector<float> expected = hidden_of(encoder.encode_ids(good));
  const auto refused = [&](const std::function<void()>& call,
                           const std::vector<std::string>& words) {
    expect_error<InvalidArgument>(call, words);
    expect_same_bits(hidden_of(encoder.encode_ids(good)), expected, "after the error");
  };
  using Batch = std::vector<TokenIds>;
  for (const auto& [batch, words] : std::vector<std::pair<Batch, std::vector<std::string>>>{
           {{}, {"empty"}},
           {{good, {}}, {"1"}},
           {{good, {41, 3}}, {"token 0 of sequence 1 is id 41", "40"}},
           {{{5, -1}}, {"-1", "40"}}}) {
    refused([&, &ids = batch] { encoder.encode_ids(ids); }, words);
  }
  for (const int64_t layer : {2, -1}) {
    const RunOptions cut = {.cut_residuals = {{.layer = layer}}};
    refused([&] { encoder.encode_ids(good, cut); }, {std::to_string(layer), "0 to 1"});
  }
  std::vector<float> values(3 * 15, 1.0f);
  values[20] = std::nanf("");
  const Positions nan = Positions::table({.rows = 3, .d_model = 15, .values = std::move(values)});
  refused([&] { encoder.encode_ids(TokenIds{}); }, {"token"});
  refused([&] { encoder.encode_ids(good, {.positions = nan}); }, {"position"});
  refused([&] { encoder.mlm_logits(std::vector<float>(16)); }, {"16", "15"});
  refused([&] { Encoder(model, {.threads = -3}); }, {"threads", "-3", "0"});
  refused([] { Encoder(std::shared_ptr<const Model>()); }, {"model", "null"});
  EXPECT_TRUE(encoder.mlm_logits({}).empty());
  expect_error<ModelError>([&] { other.encode("Tom bit a dog."); }, {"tokenizer"});
  expect_error<ModelError>([&] { other.mlm_logits(std::vector<float>(15)); }, {"head", "random"});
  EXPECT_EQ(other.encode_ids(good).hidden.size(), 3u * 15);
}

TEST(EncoderErrorsTest, TablesWithoutAUsableRowAreNamedWhateverThePolicy) {
  ModelConfig config = small_config();
  config.position = {.kind = PositionKind::kLearned, .first_position = 3};
  config.max_positions = 0;  // as many rows as the file has
  const auto model = random_model(config, 54);
  Weights weights = model->weights();
  weights.position_table.shape[0] = 3;
  Encoder encoder(Model::create(config, weights, model));
  const TokenIds ids = {1, 2};
  for (const auto overflow : {Overflow::kError, Overflow::kTruncate, Overflow::kWindow}) {
    expect_error<InvalidArgument>([&] { encoder.encode_ids(ids, {.overflow = overflow}); },
                                  {"2 tokens", "ends after 0"});
  }
}

TEST(EncoderErrorsTest, AskingForASequenceThatIsNotThereThrowsInsteadOfReadingOutside) {
  const auto model = random_model(small_config(), 51);
  const Encoding encoding = Encoder(model).encode_ids(TokenIds{1, 2});
  for (const int64_t i : {-1, 1}) EXPECT_THROW(encoding[i], std::out_of_range);
}

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(EncoderErrorsTest, NaNAndInfiniteWeightsAreAModelErrorThatNamesTheTensor) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  struct Row {
    const Tensor& (*choose)(const Weights&);
    float value;
    std::vector<std::string> words;
  };
  const std::vector<Row> rows = {
      {[](const Weights& w) -> const Tensor& { return w.token_embedding; },
       kNaN,
       {"token embedding", "nan"}},
      {[](const Weights& w) -> const Tensor& { return w.position_table; },
       kInfinity,
       {"position", "inf"}},
      {[](const Weights& w) -> const Tensor& { return w.embedding_norm.bias; },
       kNaN,
       {"embedding norm bias"}},
      {[](const Weights& w) -> const Tensor& { return w.blocks[0].q.weight; },
       kNaN,
       {"block 0 q weight"}},
      {[](const Weights& w) -> const Tensor& { return w.blocks[1].up.weight; },
       kNaN,
       {"block 1 MLP up weight"}},
      {[](const Weights& w) -> const Tensor& { return w.blocks[1].up.bias; },
       kNaN,
       {"block 1 MLP up bias"}},
      {[](const Weights& w) -> const Tensor& { return w.blocks[1].down.bias; },
       -kInfinity,
       {"block 1 MLP down bias", "-inf"}},
      {[](const Weights& w) -> const Tensor& { return w.final_norm.weight; },
       kNaN,
       {"final norm weight"}}};
  ModelConfig config = small_config();
  config.final_norm = true;
  config.embedding_norm = true;
  config.position.kind = PositionKind::kLearned;
  for (const auto activation : {Activation::kGeluErf, Activation::kRelu}) {
    for (const auto order : {NormOrder::kPreNorm, NormOrder::kPostNorm}) {
      SCOPED_TRACE(std::string(to_string(activation)) + " " + std::string(to_string(order)));
      config.activation = activation;
      config.norm_order = order;
      for (const Row& row : rows) {
        const auto spoil = [&](Weights& w) { drawn_values(row.choose(w))[1] = row.value; };
        const auto bad = random_model(config, 52, {.change = spoil});
        expect_error<ModelError>([&] { Encoder(bad).encode_ids(TokenIds{0, 1, 2}); }, row.words);
      }
    }
  }
}

/// With this number in the head's first matrix.
std::shared_ptr<const Model> head_with(float value) {
  return random_model(small_config(), 55, {.mlm_head = true, .change = [&](Weights& w) {
                                             drawn_values(w.mlm_head->dense.weight)[2] = value;
                                           }});
}

TEST(EncoderErrorsTest, NaNInTheHeadIsAModelErrorWhereTheHeadIsUsed) {
  Encoder encoder(head_with(kNaN));
  const Encoding encoding = encoder.encode_ids(TokenIds{1});
  expect_error<ModelError>([&] { encoder.mlm_logits(encoding[0].hidden); },
                           {"MLM head dense weight", "nan", "element 2"});
}

TEST(EncoderErrorsTest, AHeadThatMakesNoFiniteScoresIsAModelError) {
  const float most = std::numeric_limits<float>::max();
  Encoder encoder(head_with(most));
  std::vector<float> hidden(15, most);
  expect_error<ModelError>([&] { encoder.mlm_logits(hidden); }, {"masked-language-model head"});
  hidden[0] = kNaN;
  EXPECT_TRUE(std::isnan(encoder.mlm_logits(hidden)[0]));  // the caller's
}

}  // namespace
}  // namespace phasor
