// Intervals over texts: against every draw that there can be, and how often they hold the truth.
#include "tests/support/test.h"

namespace phasor {
namespace {

TEST(BootstrapTest, TendsToTheQuantilesOfEveryDraw) {
  const std::vector<double> sums = {1, 10, 24, 3, 40}, weights = {2, 5, 6, 1, 9};
  std::vector<double> all;  // 5⁵ draws, equally likely
  for (int draw = 0; draw < 3125; ++draw) {
    double sum = 0, weight = 0;
    for (int i = 0, rest = draw; i < 5; ++i, rest /= 5) {
      sum += sums[rest % 5];
      weight += weights[rest % 5];
    }
    all.push_back(sum / weight);
  }
  std::ranges::sort(all);
  const Interval interval = Bootstrap(5, 100000).ratio(sums, weights);
  // 100 000 draws know the rank of a quantile up to 0.05 %, so 3 standard errors are 5 of 3125.
  EXPECT_GE(interval.low, all[78 - 6]);
  EXPECT_LE(interval.low, all[78 + 6]);
  EXPECT_GE(interval.high, all[3125 - 79 - 6]);
  EXPECT_LE(interval.high, all[3125 - 79 + 6]);
}

TEST(BootstrapTest, HoldsTheTruthInNineteenOfTwentyCases) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal(3, 1);
  int held = 0;
  constexpr int kCases = 1000, kTexts = 60;
  const Bootstrap bootstrap(kTexts);
  for (int i = 0; i < kCases; ++i) {
    std::vector<double> sums, weights;
    for (int text = 0; text < kTexts; ++text) {
      weights.push_back(1 + text % 7);
      sums.push_back(weights.back() * normal(random));
    }
    const Interval interval = bootstrap.ratio(sums, weights);
    held += interval.low <= 3 && 3 <= interval.high;
  }
  EXPECT_GE(held, 910);  // 950 less the narrowness of 60 texts, and 3 standard errors of 7
  EXPECT_LE(held, 970);
}

TEST(BootstrapTest, TheUnitIsThatOfTheMean) {
  const std::vector<double> sums = {1, -2, 5, 7}, weights = {1, 2, 1, 2};
  std::vector<double> moved, scaled;
  for (size_t i = 0; i < sums.size(); ++i) {
    moved.push_back(sums[i] + 8 * weights[i]);
    scaled.push_back(4 * sums[i]);
  }
  const Bootstrap bootstrap(4);
  const Interval interval = bootstrap.ratio(sums, weights);
  EXPECT_LT(interval.low, interval.high);
  EXPECT_NEAR(bootstrap.ratio(moved, weights).low, interval.low + 8, 1e-14);
  EXPECT_DOUBLE_EQ(bootstrap.ratio(scaled, weights).high, 4 * interval.high);
  const Interval same = bootstrap.ratio(weights, weights);
  EXPECT_EQ(same.low, 1);
  EXPECT_EQ(same.high, 1);
}

TEST(BootstrapTest, TextsWithoutWeightAreLeftOut) {
  const Bootstrap bootstrap(3);
  const std::vector<double> one = {0, 6, 0}, weight = {0, 3, 0}, none(3);
  EXPECT_EQ(bootstrap.ratio(one, weight).low, 2);
  EXPECT_EQ(bootstrap.ratio(one, weight).high, 2);
  EXPECT_TRUE(std::isnan(bootstrap.ratio(none, none).low));
}

TEST(BootstrapTest, TheSameSeedDrawsTheSame) {
  const std::vector<double> sums = {1, -2, 5, 7, 1}, weights(5, 1.0);
  EXPECT_EQ(Bootstrap(5).ratio(sums, weights).low, Bootstrap(5, 1000, 1).ratio(sums, weights).low);
  EXPECT_NE(Bootstrap(5, 41, 1).ratio(sums, weights).low,
            Bootstrap(5, 41, 2).ratio(sums, weights).low);
}

TEST(BootstrapTest, Refuses) {
  EXPECT_THROW(Bootstrap(1), InvalidArgument);
  EXPECT_THROW(Bootstrap(65536), InvalidArgument);
  EXPECT_THROW(Bootstrap(5, 39), InvalidArgument);
  const std::vector<double> four(4, 1.0), five(5, 1.0);
  EXPECT_THROW(Bootstrap(5).ratio(four, five), InvalidArgument);
  EXPECT_THROW(Bootstrap(5).ratio(five, four), InvalidArgument);
}

}  // namespace
}  // namespace phasor
