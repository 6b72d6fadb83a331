// Biases of offsets in a run: T5's buckets, what edits do to them, and what replaces them.
#include "tests/support/encoder_cases.h"
#include "tests/support/test.h"

namespace phasor {
namespace {

std::shared_ptr<const Model> relative_model(int64_t num_buckets = 32, int64_t max_distance = 128) {
  ModelConfig config = small_config();
  config.norm_order = NormOrder::kPreNorm;
  config.norm = NormKind::kRmsNorm;
  config.d_head = 4;
  config.gated_mlp = true;
  config.linear_bias = false;
  config.scale_scores = false;
  config.final_norm = true;
  config.position = {
      .bias = ScoreBias::kBuckets, .num_buckets = num_buckets, .max_distance = max_distance};
  return random_model(config, 51);
}

TEST(OffsetBiasTest, BucketsAreT5s) {
  // Distances and their buckets of 32 up to 128, worked out by hand from Raffel et al.'s code.
  const std::vector<std::pair<int32_t, int64_t>> buckets = {
      {0, 0},   {1, 1},   {7, 7},   {8, 8},   {11, 8},  {12, 9},  {15, 9},  {16, 10},  {22, 10},
      {23, 11}, {31, 11}, {32, 12}, {45, 12}, {46, 13}, {63, 13}, {64, 14}, {127, 15}, {5000, 15}};
  std::vector<int32_t> places;
  for (const auto& [distance, bucket] : buckets) places.push_back(distance);
  const auto model = relative_model();
  const auto num_tokens = static_cast<int64_t>(places.size());
  const TokenIds ids = random_ids(*model, num_tokens, 1);
  const auto scores = [&](const Positions& positions) {
    Trace trace{Hook::kAttnScores};
    Encoder(model).encode_ids(ids, {.observer = &trace, .positions = positions});
    return trace.at(Hook::kAttnScores, 0).values;  // [H, T, T]
  };
  const std::vector<float> with = scores(Positions().at(places)),
                           without = scores(Positions::none());
  const std::vector<float> table = model->weights().relative_bias.to_float();  // [32, H]
  for (int64_t head = 0; head < 3; ++head) {
    for (int64_t t = 0; t < num_tokens; ++t) {
      const int64_t bucket = buckets[t].second;
      const int64_t right = (head * num_tokens) * num_tokens + t;  // token 0 looks at token t
      const int64_t left = (head * num_tokens + t) * num_tokens;   // and token t at token 0
      const int64_t side = t == 0 ? 0 : 16;
      EXPECT_NEAR(with[right] - without[right], table[(bucket + side) * 3 + head], 1e-5) << t;
      EXPECT_NEAR(with[left] - without[left], table[bucket * 3 + head], 1e-5) << t;
    }
  }
}

TEST(OffsetBiasTest, VectorsTakeItsPlace) {
  const auto model = relative_model();
  PositionTable table{.rows = 9, .d_model = 15, .values = std::vector<float>(9 * 15)};
  std::iota(table.values.begin(), table.values.end(), -60.0f);
  for (float& value : table.values) value /= 40.0f;
  for (const Positions& positions :
       {Positions::sinusoidal(SinusoidalLayout::kPaper), Positions::table(table)}) {
    expect_matches_reference(model, {random_ids(*model, 9, 1)}, {.positions = positions});
  }
  expect_error<InvalidArgument>([&] { hidden_of(model, {1}, Positions::learned()); },
                                {"no position table", "bias (buckets)", "sinusoidal"});
}

}  // namespace
}  // namespace phasor
