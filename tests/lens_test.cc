// The lens' measures against values known exactly.
#include "phasor/lens.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "phasor/errors.h"

namespace phasor {
namespace {

std::vector<float> random_values(int64_t count, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(rng() % 2001) / 1000.0f - 1.0f;
  return values;
}

TEST(MeanNormTest, IsTheMeanOfTheRowsLengths) {
  EXPECT_DOUBLE_EQ(mean_norm(std::vector<float>{3, 4, 0, 0}, 2), 2.5);
  EXPECT_DOUBLE_EQ(mean_norm(std::vector<float>{-2}, 1), 2.0);
}

TEST(MeanNormTest, SumsInDouble) {
  // In float 2^24 + 1 is 2^24 again.
  std::vector<float> row(5, 1.0f);
  row[0] = 4096.0f;
  EXPECT_DOUBLE_EQ(mean_norm(row, 5), std::sqrt(16777216.0 + 4.0));
}

TEST(MeanCosineDistanceTest, KnownAngles) {
  const std::vector<float> x = {1, 0};
  EXPECT_DOUBLE_EQ(mean_cosine_distance(x, std::vector<float>{5, 0}, 2), 0.0);
  EXPECT_DOUBLE_EQ(mean_cosine_distance(x, std::vector<float>{0, 3}, 2), 1.0);
  EXPECT_DOUBLE_EQ(mean_cosine_distance(x, std::vector<float>{-2, 0}, 2), 2.0);
  EXPECT_DOUBLE_EQ(
      mean_cosine_distance(std::vector<float>{1, 0, 0, 1}, std::vector<float>{2, 0, 1, 0}, 2), 0.5);
}

TEST(MeanCosineDistanceTest, IsSymmetricAndBlindToLength) {
  const std::vector<float> a = random_values(35, 1), b = random_values(35, 2);
  std::vector<float> longer = b;
  for (float& value : longer) value *= 4.0f;  // exact in float
  const double distance = mean_cosine_distance(a, b, 7);
  EXPECT_GT(distance, 0.1);
  EXPECT_NEAR(mean_cosine_distance(b, a, 7), distance, 1e-15);
  EXPECT_NEAR(mean_cosine_distance(a, longer, 7), distance, 1e-15);
  EXPECT_NEAR(mean_cosine_distance(a, a, 7), 0.0, 1e-15);
}

TEST(MeanAttentionDistanceTest, UniformPatternHasTheKnownMean) {
  // (1/T²) Σ_ij |i − j| = (T² − 1) / (3T)
  for (const int64_t num_tokens : {1, 2, 4, 8, 16}) {
    const std::vector<float> pattern(3 * num_tokens * num_tokens,
                                     1.0f / static_cast<float>(num_tokens));
    const auto t = static_cast<double>(num_tokens);
    EXPECT_NEAR(mean_attention_distance(pattern, 3, num_tokens), (t * t - 1) / (3 * t), 1e-12);
  }
}

TEST(MeanAttentionDistanceTest, AttendingToOneselfIsZeroAndToTheFirstTokenIsTheMeanIndex) {
  std::vector<float> pattern(2 * 5 * 5, 0.0f);
  for (int i = 0; i < 5; ++i) pattern[i * 5 + i] = pattern[25 + i * 5 + i] = 1.0f;
  EXPECT_DOUBLE_EQ(mean_attention_distance(pattern, 2, 5), 0.0);
  for (int i = 0; i < 5; ++i) {  // head 1 looks at token 0
    pattern[25 + i * 5 + i] = 0.0f;
    pattern[25 + i * 5] = 1.0f;
  }
  EXPECT_DOUBLE_EQ(mean_attention_distance(pattern, 2, 5), (0.0 + 2.0) / 2);
}

TEST(LensTest, ShapesThatDoNotFitAreRefused) {
  const std::vector<float> six(6, 1.0f), four(4, 1.0f);
  EXPECT_THROW(mean_norm(six, 4), InvalidArgument);
  EXPECT_THROW(mean_norm(six, 0), InvalidArgument);
  EXPECT_THROW(mean_cosine_distance(six, four, 2), InvalidArgument);
  EXPECT_THROW(mean_cosine_distance(six, six, 5), InvalidArgument);
  EXPECT_THROW(mean_attention_distance(six, 1, 2), InvalidArgument);
  EXPECT_THROW(mean_attention_distance(four, 0, 2), InvalidArgument);
}

}  // namespace
}  // namespace phasor
