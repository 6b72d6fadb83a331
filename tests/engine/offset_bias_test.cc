// Biases of offsets in a run: T5's buckets, what edits do to them, and what replaces them.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "phasor/encoder.h"
#include "phasor/errors.h"
#include "phasor/trace.h"
#include "tests/support/encoder_cases.h"
#include "tests/support/expect_close.h"
#include "tests/support/expect_error.h"

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

TEST(OffsetBiasTest, EveryEditMatchesTheReference) {
  const auto model = relative_model(8, 6);
  const Positions own;
  for (const Positions& positions :
       {own, Positions::none(), own.scaled(-0.5f), own.shifted(-7), own.swapped(1, 8),
        own.reversed(), own.shuffled(3), own.repeated(), own.at({4, 4, 0, 9, 1, -3, 2, 2, 7}),
        own.shifted(2).reversed().scaled(2.0f), own.averaged()}) {
    expect_matches_reference(model, {random_ids(*model, 9, 1)}, {.positions = positions});
  }
}

TEST(OffsetBiasTest, ABatchOfManyLengthsMatchesTheReference) {
  const auto model = relative_model(12, 20);
  expect_matches_reference(
      model, {random_ids(*model, 70, 1), random_ids(*model, 1, 2), random_ids(*model, 23, 3)});
}

TEST(OffsetBiasTest, ShiftingAllTokensChangesNothing) {
  const auto model = relative_model();
  const TokenIds ids = random_ids(*model, 14, 1);
  expect_same_bits(hidden_of(model, ids, Positions().shifted(1000)),
                   hidden_of(model, ids, Positions()), "hidden");
}

TEST(OffsetBiasTest, WithoutItOrAllAtOnePlaceOrderIsLost) {
  const auto model = relative_model();
  const TokenIds ids = random_ids(*model, 14, 1);
  const TokenIds backwards(ids.rbegin(), ids.rend());
  const std::vector<float> none = hidden_of(model, ids, Positions::none());
  std::vector<float> of_backwards = hidden_of(model, backwards, Positions::none());
  for (int64_t t = 0; t < 7; ++t) {
    std::swap_ranges(&of_backwards[t * 15], &of_backwards[(t + 1) * 15],
                     &of_backwards[(13 - t) * 15]);
  }
  expect_close<float, float>(of_backwards, none, 1e-5, "backwards");
  expect_same_bits(hidden_of(model, ids, Positions().scaled(0.0f)), none, "scaled by 0");
  expect_same_bits(hidden_of(model, ids, Positions().averaged()), none, "averaged");
  // The same bias on every score is no bias: softmax does not see it.
  expect_close<float, float>(hidden_of(model, ids, Positions().repeated()), none, 1e-5, "repeated");
  const std::vector<float> with = hidden_of(model, ids, Positions());
  double largest = 0;
  for (size_t i = 0; i < with.size(); ++i) {
    largest = std::max(largest, std::abs(double{with[i]} - none[i]));
  }
  EXPECT_GT(largest, 0.1) << "the bias must matter for the above to say anything";
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
  expect_error<InvalidArgument>(
      [&] {
        hidden_of(model, {1, 2}, Positions::learned());
      },
      {"no position table", "bias (buckets)", "sinusoidal"});
}

TEST(OffsetBiasTest, NoTextIsTooLong) {
  const auto model = relative_model(4, 3);
  Encoder encoder(model);
  EXPECT_EQ(encoder.model().max_tokens(), std::nullopt);
  EXPECT_EQ(encoder.encode_ids(random_ids(*model, 300, 1)).num_tokens(0), 300);
}

}  // namespace
}  // namespace phasor
