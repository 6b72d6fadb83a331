// Positions within attention: rotation, disentangled terms, biases and local windows, each by
// itself and together, against the oracle and against runs that must be the same.
#include "tests/support/encoder_cases.h"
#include "tests/support/reference_encoder.h"

namespace phasor {
namespace {

constexpr int64_t kWidth = kTableWidth;  // 3 heads of 6

struct Kind {
  std::string name;
  PositionConfig position = {};
  std::vector<LayerAttention> layer_attention = {};
  NormOrder norm_order = NormOrder::kPostNorm;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

std::vector<Kind> kinds() {
  const std::vector<LayerAttention> windows = {{.window = 5}, {.window = 0}, {.window = 2}};
  std::vector<LayerAttention> windows_and_bases = windows;
  windows_and_bases[0].rotary_base = 50.0;
  windows_and_bases[2].rotary_base = 7.0;
  const DisentangledConfig disentangled = {.num_buckets = 8, .max_distance = 30};
  const DisentangledConfig to_position = {
      .position_to_content = false, .num_buckets = 6, .max_distance = 0, .norm = false};
  const DisentangledConfig to_content = {
      .content_to_position = false, .num_buckets = 12, .max_distance = 40};
  using Rotary = RotaryConfig;
  constexpr NormOrder kPre = NormOrder::kPreNorm;
  const PositionConfig short_buckets = {
      .bias = ScoreBias::kBuckets, .num_buckets = 8, .max_distance = 6};
  PositionConfig buckets = short_buckets;
  buckets.max_distance = 20;
  PositionConfig three = {.kind = PositionKind::kLearned, .bias = ScoreBias::kAlibi};
  three.rotary = Rotary{.base = 100.0};
  PositionConfig both = buckets;
  both.kind = PositionKind::kSinusoidal;
  both.disentangled = disentangled;
  return {{"RotaryHalves", {.rotary = Rotary{}}},
          {"RotaryPairs", {.rotary = Rotary{.interleaved = true}}},
          {"RotaryHalvesOfAPart", {.rotary = Rotary{.base = 100.0, .dims = 4}}},
          {"RotaryPairsOfAPart", {.rotary = Rotary{.base = 20.0, .dims = 4, .interleaved = true}}},
          {"RotarySlowed", {.rotary = Rotary{.base = 300.0, .factor = 0.4}}},
          {"RotaryNtk", {.rotary = Rotary{.base = 100.0, .ntk_factor = 2.0, .ntk_length = 10}}},
          {"Windows", {}, windows},
          {"RotaryByLayer", {.rotary = Rotary{.base = 500.0}}, windows_and_bases, kPre},
          {"Learned", {.kind = PositionKind::kLearned}, {}, kPre},
          {"Buckets", short_buckets, {}, kPre},
          {"Alibi", {.bias = ScoreBias::kAlibi}},
          {"BucketsWithWindows", buckets, windows},
          {"Disentangled", {.disentangled = disentangled}},
          {"DisentangledContentToPosition", {.disentangled = to_position}},
          {"DisentangledPositionToContent", {.disentangled = to_content}},
          {"DisentangledWithWindows", {.disentangled = disentangled}, windows},
          {"LearnedWithRotaryAlibiAndWindows", three, windows_and_bases},
          {"SinusoidalWithBucketsAndDisentangled", both}};
}

ModelConfig config_of(const Kind& kind) {
  ModelConfig config = small_config();
  config.d_model = kWidth;
  config.num_layers = 3;
  config.max_positions = 80;
  config.position = kind.position;
  config.layer_attention = kind.layer_attention;
  config.norm_order = kind.norm_order;
  config.first_attn_norm = kind.norm_order == NormOrder::kPostNorm;
  return config;
}

std::shared_ptr<const Model> model_of(const Kind& kind) {
  return random_model(config_of(kind), 61);
}

/// Row t of the result is row places[t] of `rows`.
std::vector<float> rows_at(const std::vector<float>& rows, const std::vector<int64_t>& places) {
  std::vector<float> result;
  for (const int64_t place : places)
    result.insert(result.end(), &rows[place * kWidth], &rows[place * kWidth] + kWidth);
  return result;
}

class ScorePositionsTest : public testing::TestWithParam<Kind> {};

TEST_P(ScorePositionsTest, ABatchOfManyLengthsMatchesTheReferenceAndEachSequenceAlone) {
  const auto model = model_of(GetParam());
  std::vector<TokenIds> batch;
  for (const int64_t length : {17, 1, 70, 2, 40, 17})
    batch.push_back(random_ids(*model, length, batch.size()));
  expect_matches_reference(model, batch);
  Encoder encoder(model, {.threads = 2});
  for (const Positions& positions : {Positions(), Positions::rotary(), Positions::alibi()}) {
    const Encoding together = encoder.encode_ids(batch, {.positions = positions});
    for (size_t i = 0; i < batch.size(); ++i) {
      const Encoding alone = encoder.encode_ids(batch[i], {.positions = positions});
      expect_same_bits(together[i].hidden, alone[0].hidden, "sequence " + std::to_string(i));
    }
  }
  if (model->max_tokens()) return;  // a table ends
  const std::vector<TokenIds> long_text = {random_ids(*model, 300, 1)};
  expect_matches_reference(model, long_text);
  expect_matches_reference(model, long_text, {.positions = Positions().shuffled(5)});
}

TEST_P(ScorePositionsTest, EverySourceMatchesTheReference) {
  const auto model = model_of(GetParam());
  const std::vector<TokenIds> batch = {random_ids(*model, 19, 1), random_ids(*model, 5, 2)};
  for (const Positions& source :
       {Positions(), Positions::none(), Positions::rotary(), Positions::rotary(20.0),
        Positions::alibi(), Positions::sinusoidal(SinusoidalLayout::kMarian),
        Positions::table(drawn_table(30))}) {
    SCOPED_TRACE(to_string(source.source()));
    for (const Positions& positions :
         {source, source.scaled(0.0f), source.scaled(0.5f), source.averaged(), source.shifted(4),
          source.shuffled(3).shifted(2)})
      expect_matches_reference(model, batch, {.positions = positions});
  }
}

TEST_P(ScorePositionsTest, EveryEditMatchesTheReference) {
  const auto model = model_of(GetParam());
  const Positions own;
  for (const Positions& positions :
       {own.swapped(1, 8), own.reversed(), own.shuffled(3), own.repeated(),
        own.at({4, 4, 0, 9, 1, 33, 2, 2, 7}), own.scaled(-2.0f),
        own.shifted(2).reversed().scaled(0.3f), Positions::rotary().reversed(),
        Positions::rotary().at({-3, 5, 0, 0, 70, 1, 2, 2, 2}), Positions::alibi().swapped(0, 7),
        Positions::none().shuffled(1)})
    expect_matches_reference(model, {random_ids(*model, 9, 1)}, {.positions = positions});
}

TEST_P(ScorePositionsTest, OverflowMatchesTheReference) {
  ModelConfig config = config_of(GetParam());
  config.max_positions = 12;
  if (config.position.kind == PositionKind::kLearned) config.position.first_position = 3;
  const auto model = random_model(config, 63);
  // Interpolated to multiples of 10/27 and 11/27: none at a window's end or between whole offsets.
  const std::vector<TokenIds> batch = {random_ids(*model, 28, 1), random_ids(*model, 12, 2),
                                       random_ids(*model, 6, 3)};
  for (const auto overflow :
       {Overflow::kWindow, Overflow::kClamp, Overflow::kTruncate, Overflow::kInterpolate}) {
    for (const Positions& positions :
         {Positions(), Positions().reversed(), Positions::table(drawn_table(11)),
          Positions::table(drawn_table(1)), Positions::rotary()})
      expect_matches_reference(model, batch, {.positions = positions, .overflow = overflow});
  }
}

TEST_P(ScorePositionsTest, ShiftingAllTokensChangesNoScoreWhereNoVectorIsAdded) {
  const auto model = model_of(GetParam());
  const bool adds = GetParam().position.kind != PositionKind::kNone;
  const TokenIds ids = random_ids(*model, 23, 1);
  Encoder encoder(model);
  for (const Positions& source : {Positions(), Positions::rotary(), Positions::alibi()}) {
    if (adds && source.source() == Positions::Source::kModel) continue;
    for (const int64_t offset : {1, -7, 1000}) {
      Recorder here({Hook::kAttnScores}), there({Hook::kAttnScores});
      encoder.encode_ids(ids, {.observer = &here, .positions = source});
      encoder.encode_ids(ids, {.observer = &there, .positions = source.shifted(offset)});
      for (int64_t layer = 0; layer < 3; ++layer) {
        expect_close<float, float>(there.values(Hook::kAttnScores, layer),
                                   here.values(Hook::kAttnScores, layer), 1e-4,
                                   "scores moved by " + std::to_string(offset));
      }
    }
  }
}

TEST_P(ScorePositionsTest, WithoutItPermutingTokensPermutesTheResult) {
  const auto model = model_of(GetParam());
  const TokenIds ids = random_ids(*model, 12, 1);
  const std::vector<int64_t> places = {5, 0, 11, 3, 2, 7, 1, 10, 4, 9, 8, 6};
  TokenIds permuted;
  for (const int64_t place : places) permuted.push_back(ids[place]);
  for (const Positions& positions :
       {Positions::none(), Positions().scaled(0.0f), Positions::rotary().scaled(0.0f),
        Positions().averaged(), Positions::table(drawn_table(30)).averaged()}) {
    expect_close<float, float>(hidden_of(model, permuted, positions),
                               rows_at(hidden_of(model, ids, positions), places), 1e-5,
                               "permuted rows");
  }
  // The counter-proof.
  EXPECT_GT(largest_difference(hidden_of(model, permuted, Positions()),
                               rows_at(hidden_of(model, ids, Positions()), places)),
            1e-2);
}

TEST_P(ScorePositionsTest, ShufflingPositionsIsPermutingTokens) {
  const auto model = model_of(GetParam());
  const TokenIds ids = random_ids(*model, 33, 1);
  for (const Positions& source : {Positions(), Positions::rotary(), Positions::alibi()}) {
    const Encoding shuffled = Encoder(model).encode_ids(ids, {.positions = source.shuffled(7)});
    std::vector<int64_t> places;
    TokenIds permuted(ids.size());
    for (const float position : shuffled.positions) {
      permuted[static_cast<size_t>(position)] = ids[places.size()];
      places.push_back(static_cast<int64_t>(position));
    }
    expect_close<float, float>(shuffled[0].hidden,
                               rows_at(hidden_of(model, permuted, source), places), 2e-5,
                               "tokens at shuffled positions");
  }
}

constexpr auto kName = [](const auto& kind) { return kind.param.name; };
INSTANTIATE_TEST_SUITE_P(Kinds, ScorePositionsTest, testing::ValuesIn(kinds()), kName);

// The rows of offsets i − j and j − i by the formula of Transformers' DeBERTa-v2, as evaluated
// there.
TEST(DisentangledTest, RowsAreDeBertas) {
  using Rows = std::vector<std::array<int64_t, 3>>;
  const Rows wide = {{0, 256, 256},   {1, 257, 255},  {127, 383, 129}, {128, 384, 128},
                     {129, 385, 127}, {200, 425, 87}, {300, 463, 49},  {400, 489, 23},
                     {511, 511, 1},   {512, 511, 0},  {5000, 511, 0}};
  const Rows few = {{8, 24, 8},   {9, 25, 7},   {14, 25, 7},  {15, 26, 6}, {100, 29, 3},
                    {200, 30, 2}, {300, 31, 1}, {511, 31, 1}, {600, 31, 0}};
  const Rows near = {{4, 12, 4}, {5, 13, 3}, {7, 14, 2}, {10, 15, 1}, {15, 15, 1}, {16, 15, 0}};
  const Rows no_buckets = {{0, 8, 8}, {7, 15, 1}, {8, 15, 0}, {9, 15, 0}};
  for (const auto& [num_buckets, max_distance, rows] :
       {std::tuple(256, 512, wide), std::tuple(16, 512, few), std::tuple(8, 16, near),
        std::tuple(8, 0, no_buckets)}) {
    const DisentangledConfig config = {.num_buckets = num_buckets, .max_distance = max_distance};
    for (const auto& [offset, right, left] : rows) {
      const auto distance = static_cast<double>(offset);
      EXPECT_EQ(reference::disentangled_row(config, distance), right) << offset;
      EXPECT_EQ(reference::disentangled_row(config, -distance), left) << offset;
    }
  }
}

TEST(OffsetBiasTest, BucketsAreT5s) {
  const ModelConfig config =
      small_config({.bias = ScoreBias::kBuckets, .num_buckets = 32, .max_distance = 128});
  const auto model = random_model(config, 51);
  const std::vector<float> table = model->weights().relative_bias.to_float();  // [32, H]
  // Distances and their buckets, worked out by hand from Raffel et al.'s code.
  const std::vector<std::pair<int32_t, int64_t>> buckets = {
      {0, 0},   {1, 1},   {7, 7},   {8, 8},   {11, 8},  {12, 9},  {15, 9},  {16, 10},  {22, 10},
      {23, 11}, {31, 11}, {32, 12}, {45, 12}, {46, 13}, {63, 13}, {64, 14}, {127, 15}, {5000, 15}};
  std::vector<int32_t> places;
  for (const auto& [distance, bucket] : buckets) {
    places.push_back(distance);
    for (int64_t head = 0; head < 3; ++head) {
      const int64_t right = bucket + (distance == 0 ? 0 : 16);
      EXPECT_EQ(reference::score_bias(*model, {}, head, distance), table[right * 3 + head]);
      EXPECT_EQ(reference::score_bias(*model, {}, head, -distance), table[bucket * 3 + head]);
    }
  }
  expect_matches_reference(model, {random_ids(*model, std::ssize(places), 1)},
                           {.positions = Positions().at(places)});
}

TEST(PositionsOfARunTest, WhatAModelCannotHaveIsRefused) {
  const auto model = random_model(small_config(), 64);  // heads of 5
  EXPECT_INVALID(hidden_of(model, {1}, Positions::rotary()), {"5"});
  const ModelConfig buckets = small_config({.bias = ScoreBias::kBuckets});
  EXPECT_INVALID(hidden_of(random_model(buckets, 51), {1}, Positions::learned()),
                 {"no position table", "bias (buckets)", "sinusoidal"});
}

TEST(AbsentBiasesTest, AreZeros) {
  ModelConfig config = small_config({.kind = PositionKind::kLearned});
  config.gated_mlp = true;
  config.position.disentangled = DisentangledConfig{.num_buckets = 8, .max_distance = 20};
  config.final_norm = config.embedding_norm = true;
  using Take = std::function<void(BlockWeights&)>;
  for (const Take& take :
       std::vector<Take>{[](BlockWeights& block) { block.q.bias = {}; },
                         [](BlockWeights& block) { block.k.bias = {}; },
                         [](BlockWeights& block) { block.v.bias = block.out.bias = {}; },
                         [](BlockWeights& block) { block.gate.bias = block.up.bias = {}; },
                         [](BlockWeights& block) { block.down.bias = block.mlp_norm.bias = {}; },
                         [](BlockWeights& block) { block.attn_norm.bias = {}; }}) {
    for (const size_t first : {0, 1}) {  // of all blocks, or of the second alone
      RandomModelExtras extras;
      extras.change = [&](Weights& weights) {
        for (size_t i = first; i < weights.blocks.size(); ++i) take(weights.blocks[i]);
        weights.embedding_norm.bias = weights.final_norm.bias = weights.relative_norm.bias = {};
      };
      const auto model = random_model(config, 65, extras);
      expect_matches_reference(model, {random_ids(*model, 11, 1), random_ids(*model, 3, 2)});
    }
  }
}

}  // namespace
}  // namespace phasor
