// The encoder against the oracle, the properties that hold exactly, texts in, and bad input;
// thousands of random batches against the same sequences alone.
#include "tests/support/bert_folder.h"
#include "tests/support/encoder_cases.h"
#include "tests/support/reference_encoder.h"

namespace phasor {
namespace {

class EncoderOnDrawnModelTest : public testing::TestWithParam<int> {};

TEST_P(EncoderOnDrawnModelTest, MatchesTheReferenceAtEveryHook) {
  const auto model = drawn_model(GetParam());
  expect_matches_reference(
      model, {random_ids(*model, 11, 1), random_ids(*model, 1, 2), random_ids(*model, 23, 3)});
}

INSTANTIATE_TEST_SUITE_P(Seeds, EncoderOnDrawnModelTest, testing::Range(0, 121));

TEST(EncoderTest, EveryNormOrderWithEveryActivationMatchesTheReference) {
  ModelConfig config = small_config();
  for (const auto order : {NormOrder::kPreNorm, NormOrder::kPostNorm}) {
    for (const std::string_view activation : names<Activation>().all) {
      SCOPED_TRACE(std::string(to_string(order)) + " " + std::string(activation));
      config.norm_order = order;
      config.activation = parse<Activation>(activation);
      config.final_norm = order == NormOrder::kPreNorm;
      const auto model = random_model(config, 7);
      expect_matches_reference(model, {random_ids(*model, 9, 1)});
    }
  }
}

TEST(EncoderTest, TheSmallestModelAndAThousandTokensMatchTheReference) {
  ModelConfig bert = small_config(), one_head = bert, smallest = bert, long_text = bert;
  bert.embedding_norm = true;
  bert.norm_eps = 1e-12f;
  bert.position.kind = PositionKind::kLearned;
  const auto bert_model = random_model(bert, 8, {.token_types = 2});
  expect_matches_reference(bert_model, {random_ids(*bert_model, 12, 1), {40, 7, 7, 0, 3}});
  one_head.num_heads = one_head.num_layers = 1;
  expect_matches_reference(random_model(one_head, 9), {{40}});
  smallest.d_model = smallest.d_ff = smallest.num_layers = smallest.num_heads = 1;
  smallest.vocab_size = 1;
  smallest.final_norm = true;
  for (const auto order : {NormOrder::kPreNorm, NormOrder::kPostNorm}) {
    smallest.norm_order = order;
    expect_matches_reference(random_model(smallest, 10), {{0}, {0, 0, 0}});
  }
  long_text.num_layers = 1;
  long_text.position.kind = PositionKind::kSinusoidal;
  const auto model = random_model(long_text, 11);
  expect_matches_reference(model, {random_ids(*model, 1000, 1)});
}

TEST(EncoderTest, CutResidualsMatchTheReference) {
  using Site = ResidualCut::Site;
  for (const auto order : {NormOrder::kPreNorm, NormOrder::kPostNorm}) {
    ModelConfig config = small_config({.kind = PositionKind::kLearned});
    config.norm_order = order;
    const auto model = random_model(config, 12);
    const TokenIds ids = random_ids(*model, 7, 1);
    Encoder encoder(model);
    const std::vector<float> uncut = hidden_of(encoder.encode_ids(ids));
    EXPECT_NE(hidden_of(encoder.encode_ids(ids, {.cut_residuals = {{.layer = 0}}})), uncut);
    expect_same_bits(hidden_of(encoder.encode_ids(ids)), uncut, "a run after a cut one");
    for (const auto site : {Site::kAttention, Site::kMlp, Site::kBoth})
      expect_matches_reference(model, {ids}, {.cut_residuals = {{.layer = 1, .site = site}}});
    expect_matches_reference(model, {ids},
                             {.cut_residuals = {{.layer = 0, .site = Site::kAttention},
                                                {.layer = 0, .site = Site::kMlp},
                                                {.layer = 1, .site = Site::kMlp}}});
  }
}

TEST(EncoderTest, MlmLogitsMatchTheReference) {
  for (const auto activation : {Activation::kGeluErf, Activation::kRelu}) {
    ModelConfig config = small_config();
    config.activation = activation;
    const auto model = random_model(config, 14, {.mlm_head = true});
    Encoder encoder(model);
    const Encoding encoding = encoder.encode_ids(random_ids(*model, 6, 1));
    const std::vector<float> logits = encoder.mlm_logits(encoding[0].hidden);
    ASSERT_EQ(static_cast<int64_t>(logits.size()), 6 * config.vocab_size);
    const std::vector<double> hidden(encoding[0].hidden.begin(), encoding[0].hidden.end());
    expect_close<float, double>(logits, reference::mlm_logits(*model, hidden), 1e-4, "logits");
    const auto row = encoding[0].hidden.subspan(2 * config.d_model, config.d_model);
    const std::span<const float> all = logits;
    expect_same_bits(encoder.mlm_logits(row), all.subspan(2 * config.vocab_size, config.vocab_size),
                     "logits of one row");
  }
}

TEST(EncoderTest, ManyShapesOneAfterTheOtherStayRight) {
  const auto model = random_model(small_config(), 18);
  Encoder encoder(model, {.threads = 1, .max_plans = 4});
  std::vector<TokenIds> texts;
  std::vector<Encoding> first_pass;
  for (int64_t length = 1; length <= 90; ++length) {  // 12 row counts
    texts.push_back(random_ids(*model, length, length));
    first_pass.push_back(encoder.encode_ids(texts.back()));
  }
  for (size_t i = 0; i < texts.size(); i += 7) {
    const Encoding again = encoder.encode_ids(texts[i]);
    expect_same_bits(again[0].hidden, first_pass[i][0].hidden, std::to_string(i + 1) + " tokens");
  }
  for (const size_t i : {0, 50, 89}) {
    const auto expected = reference::encode(*model, texts[i]);
    expect_close<float, double>(first_pass[i][0].hidden, expected.hidden, 1e-4,
                                std::to_string(i + 1) + " tokens");
  }
}

/// The bytes of ±1 or ±1.5, or in float64 of what is nearest to any float32.
std::string bytes_as(DType dtype, float value) {
  const auto bytes = [](auto bits) {
    return std::string(reinterpret_cast<const char*>(&bits), sizeof bits);
  };
  if (dtype == DType::kFloat64) return bytes(value * (1 + 0x1p-26));  // half a unit is 2^-25
  const auto upper = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  if (dtype == DType::kBFloat16) return bytes(upper);
  const bool is_one = (upper & 0x7fff) == 0x3f80;
  return bytes(static_cast<uint16_t>((upper & 0x8000) | (is_one ? 0x3c00 : 0x3e00)));
}

TEST(EncoderTest, WeightsOfOtherTypesGiveTheBitsOfTheirNearestFloat32) {
  const auto some = [](Weights& w) {
    return std::array{&w.token_embedding, &w.blocks[0].q.weight, &w.blocks[1].down.bias};
  };
  const auto round = [&](Weights& weights) {
    for (const Tensor* const tensor : some(weights))
      for (float& x : drawn_values(*tensor)) x = std::copysign(std::abs(x) > 0.2f ? 1.5f : 1, x);
  };
  const auto model = random_model(small_config(), 20, {.change = round});
  const TokenIds ids = random_ids(*model, 8, 1);
  const std::vector<float> expected = hidden_of(Encoder(model).encode_ids(ids));
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat64}) {
    std::list<std::string> storage;
    Weights weights = model->weights();
    for (Tensor* const tensor : some(weights)) {
      std::string& bytes = storage.emplace_back();
      for (const float value : tensor->to_float()) bytes += bytes_as(dtype, value);
      tensor->dtype = dtype;
      tensor->data = reinterpret_cast<const std::byte*>(bytes.data());
    }
    const auto run = [&] {
      return hidden_of(Encoder(Model::create(model->config(), weights, nullptr)).encode_ids(ids));
    };
    expect_same_bits(run(), expected, std::string(to_string(dtype)));
    if (dtype != DType::kFloat64) continue;
    for (const auto& [tensor, element, name] :
         {std::tuple(1, int64_t{3}, "block 0 q weight"),
          std::tuple(0, ids[0] * model->config().d_model, "token embedding")}) {
      std::string& bytes = *std::next(storage.begin(), tensor);
      const std::string before = bytes;
      bytes.replace(8 * element, 8, double_bytes({1e39}));
      expect_error<ModelError>(run, {name, "inf"});
      bytes = before;
    }
  }
}

// Texts, whose letters are 4, 6, … at the beginning of a word and 5, 7, … within one.
constexpr int32_t kFirst = 2, kLast = 3;  // [CLS] and [SEP]

std::shared_ptr<const Model> letter_model() {
  const auto letters = Tokenizer::load(BertFolder({}).path());
  ModelConfig config = small_config({.kind = PositionKind::kLearned});  // 12 positions
  config.vocab_size = letters->vocab_size();
  return random_model(config, 61, {.tokenizer = letters});
}

TokenIds ids_of(const Encoding& encoding, int64_t i) {
  return {encoding[i].token_ids.begin(), encoding[i].token_ids.end()};
}

TEST(EncodeTextTest, GivesWhatItsTokenIdsGiveAndNoTextsAreRefused) {
  Encoder encoder(letter_model());
  const Encoding texts = encoder.encode({"abz", "", "c"});
  const std::vector<TokenIds> ids = {
      {kFirst, 4, 7, 55, kLast}, {kFirst, kLast}, {kFirst, 8, kLast}};
  ASSERT_EQ(texts.size(), 3);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(ids_of(texts, i), ids[i]);
  const Encoding same = encoder.encode_ids(ids);
  expect_same_bits(texts.hidden, same.hidden, "as ids");
  EXPECT_INVALID(encoder.encode(std::vector<std::string>{}), {"empty"});
}

TEST(EncodeTextTest, TooLongTextIsRefusedOrTruncatedBeforeItsClosingToken) {
  Encoder encoder(letter_model());
  const std::string text = "abcdefghijklmnop";  // 18 tokens
  EXPECT_INVALID(encoder.encode(text), {"18", "12", "truncate", "clamp", "interpolate", "window"});
  const Encoding truncated = encoder.encode(text, {.overflow = Overflow::kTruncate});
  EXPECT_EQ(ids_of(truncated, 0), (TokenIds{kFirst, 4, 7, 9, 11, 13, 15, 17, 19, 21, 23, kLast}));
  for (const auto overflow : {Overflow::kClamp, Overflow::kInterpolate, Overflow::kWindow})
    EXPECT_EQ(encoder.encode(text, {.overflow = overflow}).token_ids.size(), 18u);
  EXPECT_EQ(encoder.encode(text, {.positions = Positions::none(), .overflow = Overflow::kTruncate})
                .token_ids.size(),
            18u);
}

TEST(EncodeTest, FlatIdsWithOffsetsAreTheSameAsSequencesByThemselves) {
  const auto model = random_model(small_config(), 6);
  Encoder encoder(model, {.threads = 2});
  std::vector<TokenIds> sequences;
  TokenIds flat;
  std::vector<int64_t> offsets = {0};
  for (int i = 1; i < 20; ++i) {
    sequences.push_back(random_ids(*model, i, i));
    flat.insert(flat.end(), sequences.back().begin(), sequences.back().end());
    offsets.push_back(std::ssize(flat));
  }
  const Encoding expected = encoder.encode_ids(sequences);
  std::vector<float> memory(flat.size() * 15);
  const Encoding got = encoder.encode_ids(flat, offsets, {.hidden = memory});
  expect_same_bits(memory, expected.hidden, "hidden");
  EXPECT_TRUE(got.hidden.empty() && got[7].hidden.empty());
  EXPECT_EQ(got.offsets, offsets);
  EXPECT_EQ(got.token_ids, flat);
  EXPECT_TRUE(std::ranges::equal(got[7].token_ids, sequences[7]));
  EXPECT_INVALID(encoder.encode_ids(flat, offsets, {.hidden = std::span(memory).first(10)}),
                 {"10 floats", std::to_string(flat.size() * 15)});
}

TEST(EncodeTest, OffsetsThatDoNotDivideTheIdsAndSequencesThatAreNotThereAreRefused) {
  Encoder encoder(random_model(small_config(), 6));
  const TokenIds ids = {1, 2, 3, 4};
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  using Offsets = std::vector<int64_t>;
  for (const Offsets& offsets :
       {Offsets{}, Offsets{0}, Offsets{0, 3}, Offsets{1, 4}, Offsets{0, 2, 2, 4},
        Offsets{0, 3, 2, 4}, Offsets{0, 5, 4}, Offsets{0, -1, 4}, Offsets{0, 5}, Offsets{kLeast, 4},
        Offsets{0, kMost, 4}, Offsets{0, kLeast, 4}})
    EXPECT_THROW(encoder.encode_ids(ids, offsets), InvalidArgument);
  const Encoding encoding = encoder.encode_ids(ids);
  for (const int64_t i : {-1, 1}) EXPECT_THROW(encoding[i], std::out_of_range);
}

TEST(EncoderErrorsTest, BadCallsAreNamedAndTheEncoderStaysUsable) {
  const auto model = random_model(small_config(), 51, {.mlm_head = true});  // 41 ids
  const auto headless = random_model(small_config(), 51);
  Encoder encoder(model, {.threads = 2}), other(headless);
  const TokenIds good = {0, 40, 7};
  const std::vector<float> expected = hidden_of(encoder.encode_ids(good));
  const auto refused = [&](const auto& call, const std::vector<std::string>& words) {
    expect_error<InvalidArgument>(call, words);
    expect_same_bits(hidden_of(encoder.encode_ids(good)), expected, "after the error");
  };
  using Batch = std::vector<TokenIds>;
  for (const auto& [batch, words] : std::vector<std::pair<Batch, std::vector<std::string>>>{
           {{}, {"empty"}},
           {{good, {}}, {"1"}},
           {{good, {41, 3}}, {"token 0 of sequence 1 is id 41", "40"}},
           {{{5, -1}}, {"-1", "40"}}})
    refused([&, &ids = batch] { encoder.encode_ids(ids); }, words);
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
  EXPECT_REFUSED(other.encode("Tom bit a dog."), {"tokenizer"});
  EXPECT_REFUSED(other.mlm_logits(std::vector<float>(15)), {"head", "random"});
  EXPECT_EQ(other.encode_ids(good).hidden.size(), 3u * 15);
}

TEST(EncoderErrorsTest, TablesWithoutAUsableRowAreNamedWhateverThePolicy) {
  ModelConfig config = small_config({.kind = PositionKind::kLearned, .first_position = 3});
  config.max_positions = 0;  // as many rows as the file has
  const auto model = random_model(config, 54);
  Weights weights = model->weights();
  weights.position_table.shape[0] = 3;
  Encoder encoder(Model::create(config, weights, model));
  const TokenIds ids = {1, 2};
  for (const auto overflow : {Overflow::kError, Overflow::kTruncate, Overflow::kWindow})
    EXPECT_INVALID(encoder.encode_ids(ids, {.overflow = overflow}), {"2 tokens", "ends after 0"});
}

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(EncoderErrorsTest, NaNAndInfiniteWeightsAreAModelErrorThatNamesTheTensor) {
  struct Row {
    std::string tensor;
    float value;
    std::vector<std::string> words;
  };
  const std::vector<Row> rows = {
      {"token_embedding.weight", kNaN, {"token embedding", "nan"}},
      {"position_embedding.weight", INFINITY, {"position", "inf"}},
      {"embedding_norm.bias", kNaN, {"embedding norm bias"}},
      {"blocks.0.attn.q.weight", kNaN, {"block 0 q weight"}},
      {"blocks.1.mlp.up.weight", kNaN, {"block 1 MLP up weight"}},
      {"blocks.1.mlp.up.bias", kNaN, {"block 1 MLP up bias"}},
      {"blocks.1.mlp.down.bias", -INFINITY, {"block 1 MLP down bias", "-inf"}},
      {"final_norm.weight", kNaN, {"final norm weight"}}};
  ModelConfig config = small_config({.kind = PositionKind::kLearned});
  config.final_norm = true;
  config.embedding_norm = true;
  for (const auto activation : {Activation::kGeluErf, Activation::kRelu}) {
    for (const auto order : {NormOrder::kPreNorm, NormOrder::kPostNorm}) {
      SCOPED_TRACE(std::string(to_string(activation)) + " " + std::string(to_string(order)));
      config.activation = activation;
      config.norm_order = order;
      for (const Row& row : rows) {
        const auto bad = random_model(config, 52);
        for (const auto& [name, tensor] : bad->parameters())
          if (name == row.tensor) drawn_values(tensor)[1] = row.value;
        EXPECT_REFUSED(Encoder(bad).encode_ids(TokenIds{0, 1, 2}), row.words);
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

TEST(EncoderErrorsTest, AHeadThatHasNaNOrMakesNoFiniteScoresIsAModelErrorWhereItIsUsed) {
  Encoder encoder(head_with(kNaN));
  const int64_t bytes = encoder.packed_bytes();
  const std::vector<float> states = hidden_of(encoder.encode_ids(TokenIds{1}));
  for (int asked = 0; asked < 2; ++asked) {
    EXPECT_REFUSED(encoder.mlm_logits(states), {"MLM head dense weight", "nan", "element 2"});
    EXPECT_EQ(encoder.packed_bytes(), bytes);
    expect_same_bits(hidden_of(encoder.encode_ids(TokenIds{1})), states, "after the error");
  }
  const float most = std::numeric_limits<float>::max();
  Encoder large(head_with(most));
  std::vector<float> hidden(15, most);
  EXPECT_REFUSED(large.mlm_logits(hidden), {"masked-language-model head"});
  hidden[0] = kNaN;
  EXPECT_TRUE(std::isnan(large.mlm_logits(hidden)[0]));  // the caller's
}

enum class BatchKind { kPostNorm, kPreNorm, kRelativeBias, kWide };
constexpr const char* kKindNames[] = {"PostNorm", "PreNorm", "RelativeBias", "Wide"};

std::shared_ptr<const Model> model_of(BatchKind kind) {
  ModelConfig config = small_config({.kind = PositionKind::kSinusoidal});
  config.num_heads = 4;
  config.d_model =
      kind == BatchKind::kPostNorm ? 36 : 64;  // rows at odd addresses, and at even ones
  config.d_ff = 3 * config.d_model;
  config.norm_order = kind == BatchKind::kPostNorm ? NormOrder::kPostNorm : NormOrder::kPreNorm;
  if (kind == BatchKind::kPreNorm) config.d_embedding = 20;
  if (kind == BatchKind::kRelativeBias) {  // as T5
    config.position = {.bias = ScoreBias::kBuckets};
    config.norm = NormKind::kRmsNorm;
    config.gated_mlp = true;
  }
  if (kind == BatchKind::kWide) {  // enough work for all threads to share one sequence
    config.d_model = 256;
    config.d_ff = 1024;
    config.num_layers = 1;
  }
  return random_model(config, 17);
}

using Case = std::tuple<BatchKind, Precision, KernelLibrary>;
class BatchTest : public testing::TestWithParam<Case> {
 protected:
  /// Of 1 to 280 tokens, most of them short.
  TokenIds draw_sequence() {
    const int64_t most = std::vector<int64_t>{12, 40, 280}[random_() % 3];
    return random_ids(*model_, 1 + static_cast<int64_t>(random_() % most), random_());
  }

  /// Numbers of 1 to 40 sequences out of `count`; some come twice.
  std::vector<size_t> draw_batch(size_t count) {
    std::vector<size_t> batch(1 + random_() % (random_() % 8 == 0 ? 40 : 7));
    for (size_t& sequence : batch) sequence = random_() % count;
    return batch;
  }

  std::mt19937_64 random_{23};
  std::shared_ptr<const Model> model_ = model_of(std::get<BatchKind>(GetParam()));
};

TEST_P(BatchTest, ASequenceHasTheSameBitsAloneAndInAnyBatchOnAnyThreads) {
  const auto precision = std::get<Precision>(GetParam());
  std::vector<Encoder> encoders;
  for (const int threads : {1, 2, 5, 16}) {
    encoders.emplace_back(model_, EncoderOptions{.threads = threads,
                                                 .precision = precision,
                                                 .kernels = std::get<KernelLibrary>(GetParam())});
  }
  std::vector<TokenIds> sequences;
  std::vector<Encoding> alone;
  for (int i = 0; i < 40; ++i) {
    sequences.push_back(draw_sequence());
    alone.push_back(encoders[i % 2].encode_ids(sequences.back()));
  }
  // Every length comes often enough for what a sanitizer sees.
  constexpr int kRounds = HAS_ADDRESS_SANITIZER ? 100 : 300;
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    const std::vector<size_t> batch = draw_batch(sequences.size());
    std::vector<TokenIds> ids;
    for (const size_t sequence : batch) ids.push_back(sequences[sequence]);
    Encoder& encoder = encoders[random_() % encoders.size()];
    const Encoding together = encoder.encode_ids(ids);
    for (size_t i = 0; i < batch.size() && !HasFailure(); ++i) {
      const std::string what = std::to_string(i) + " of " + std::to_string(batch.size()) + ", of " +
                               std::to_string(ids[i].size()) + " tokens, on " +
                               std::to_string(encoder.threads()) + " threads";
      const Encoding& expected = alone[batch[i]];
      expect_same_bits(together[i].hidden, expected[0].hidden, what);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    , BatchTest,
    testing::Combine(testing::Values(BatchKind::kPostNorm, BatchKind::kPreNorm,
                                     BatchKind::kRelativeBias, BatchKind::kWide),
                     testing::Values(Precision::kFloat32, Precision::kBfloat16, Precision::kInt8),
                     testing::ValuesIn(kKernels)),
    [](const testing::TestParamInfo<Case>& info) {
      return std::string(kKindNames[static_cast<int>(std::get<BatchKind>(info.param))]) + "_" +
             std::string(to_string(std::get<Precision>(info.param))) + "_" +
             std::string(to_string(std::get<KernelLibrary>(info.param)));
    });

}  // namespace
}  // namespace phasor
