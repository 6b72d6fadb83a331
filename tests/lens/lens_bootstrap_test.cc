// Intervals over texts, against every draw that there can be.
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
