// Norms, angles, attention, predictions and intervals against values known exactly, profiles of
// heads against patterns made by hand.
#include "lens/bootstrap.h"
#include "lens/prediction.h"
#include "tests/support/encoder_cases.h"

namespace phasor {
namespace {

TEST(MeanCosineDistanceTest, KnownAnglesAndLengths) {
  const std::vector<float> x = {1, 0};
  EXPECT_DOUBLE_EQ(mean_cosine_distance(x, std::vector<float>{5, 0}, 2), 0.0);
  EXPECT_DOUBLE_EQ(mean_cosine_distance(x, std::vector<float>{0, 3}, 2), 1.0);
  EXPECT_DOUBLE_EQ(mean_cosine_distance(x, std::vector<float>{-2, 0}, 2), 2.0);
  EXPECT_DOUBLE_EQ(
      mean_cosine_distance(std::vector<float>{1, 0, 0, 1}, std::vector<float>{2, 0, 1, 0}, 2), 0.5);
  EXPECT_DOUBLE_EQ(mean_norm(std::vector<float>{3, 4, 0, 0}, 2), 2.5);
  EXPECT_DOUBLE_EQ(mean_norm(std::vector<float>{-2}, 1), 2.0);
  const std::vector<float> row = {4096, 1, 1, 1, 1};  // in float 2^24 + 1 is 2^24 again
  EXPECT_DOUBLE_EQ(mean_norm(row, 5), std::sqrt(16777216.0 + 4.0));
}

TEST(AttentionByOffsetTest, AHeadThatReadsThePreviousTokenHasOneAtMinusOne) {
  std::vector<float> pattern(2 * 4 * 4, 0.0f);
  for (int i = 0; i < 4; ++i) {
    pattern[i * 4 + std::max(i - 1, 0)] = 1.0f;  // head 0: the previous token; the first, itself
    pattern[16 + i * 4 + 3] = 1.0f;              // head 1: the last token
  }
  const std::vector<double> previous = attention_by_offset(std::span(pattern).first(16), 1, 4);
  EXPECT_EQ(previous, (std::vector<double>{0, 0, 1, 0.25, 0, 0, 0}));
  const std::vector<double> both = attention_by_offset(pattern, 2, 4);
  const double sixth = 1.0 / 6;
  EXPECT_EQ(both, (std::vector<double>{0, 0, 0.5, 0.25, sixth, 0.25, 0.5}));
  EXPECT_EQ(attention_by_offset(std::vector<float>{1.0f}, 1, 1), (std::vector<double>{1}));
}

TEST(ScoreTokensTest, LossIsTheLogarithmOfTheProbabilityAndRankCountsTheHigher) {
  const std::vector<float> logits = {0.5f, 2.0f, 1.25f};
  const double sum = std::exp(0.5) + std::exp(2.0) + std::exp(1.25);
  for (int32_t id = 0; id < 3; ++id) {
    const TokenScore score = score_tokens(logits, 3, {&id, 1}).at(0);
    EXPECT_NEAR(score.loss, -std::log(std::exp(static_cast<double>(logits[id])) / sum), 1e-14);
    EXPECT_EQ(score.rank, (std::vector<int64_t>{2, 0, 1})[id]);
  }
  const std::vector<TokenScore> scores =
      score_tokens(std::vector<float>(24, 1e4f), 8, std::vector<int32_t>{0, 7, 3});
  ASSERT_EQ(scores.size(), 3u);
  for (const TokenScore& score : scores) {
    EXPECT_NEAR(score.loss, std::log(8.0), 1e-12);
    EXPECT_EQ(score.rank, 0);
  }
}

TEST(LensTest, ShapesThatDoNotFitAreRefused) {
  const std::vector<float> six(6, 1.0f), four(4, 1.0f);
  EXPECT_THROW(mean_norm(six, 4), InvalidArgument);
  EXPECT_THROW(mean_norm(six, 0), InvalidArgument);
  EXPECT_THROW(mean_cosine_distance(six, four, 2), InvalidArgument);
  EXPECT_THROW(mean_cosine_distance(six, six, 5), InvalidArgument);
  EXPECT_THROW(mean_attention_distance(six, 1, 2), InvalidArgument);
  EXPECT_THROW(mean_attention_distance(four, 0, 2), InvalidArgument);
  EXPECT_THROW(attention_by_offset(six, 1, 2), InvalidArgument);
  EXPECT_THROW(score_tokens(six, 4, std::vector<int32_t>{0}), InvalidArgument);
  EXPECT_THROW(score_tokens(six, 3, std::vector<int32_t>{0}), InvalidArgument);
  EXPECT_THROW(score_tokens(six, 3, std::vector<int32_t>{0, 3}), InvalidArgument);
  EXPECT_THROW(score_tokens(six, 3, std::vector<int32_t>{0, -1}), InvalidArgument);
}

TEST(LogitLensTest, OfTheLastBlocksOutputItSaysWhatTheModelSays) {
  ModelConfig config = small_config();
  config.norm_order = NormOrder::kPreNorm;
  config.final_norm = true;
  config.norm_eps = 0.1f;  // large enough to be missed
  for (const NormKind kind : {NormKind::kLayerNorm, NormKind::kRmsNorm}) {
    config.norm = kind;
    for (const bool bias : {true, false}) {
      const auto without = [](Weights& weights) { weights.final_norm.bias = {}; };
      RandomModelExtras extras{.mlm_head = true};
      if (!bias) extras.change = without;
      const auto model = random_model(config, 4, extras);
      Encoder encoder(model);
      Trace trace{Hook::kResidPost};
      const Encoding encoding = encoder.encode_ids(random_ids(*model, 9, 1), {.observer = &trace});
      const std::vector<float>& states = trace.at(Hook::kResidPost, config.num_layers - 1).values;
      const std::vector<float> want = encoder.mlm_logits(encoding[0].hidden);
      const std::vector<float> got = logit_lens(encoder, states);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
      EXPECT_TRUE(logit_lens(encoder, {}).empty());
      EXPECT_THROW(logit_lens(encoder, std::span(states).first(16)), InvalidArgument);
    }
  }
}

TEST(LogitLensTest, WithoutAFinalNormItIsTheHead) {
  const auto model = random_model(small_config(), 4, {.mlm_head = true});
  Encoder encoder(model);
  const Trace trace = recorded(encoder, random_ids(*model, 9, 1), {Hook::kNormalizedResidPost});
  const std::vector<float>& states = trace.at(Hook::kNormalizedResidPost, 0).values;
  EXPECT_EQ(logit_lens(encoder, states), encoder.mlm_logits(states));
  EXPECT_THROW(logit_lens(encoder, std::span(states).first(16)), InvalidArgument);
  Encoder headless(random_model(small_config(), 4));
  EXPECT_THROW(logit_lens(headless, states), ModelError);
}

/// A pattern [T, T] of rows that attend to one token each.
std::vector<float> pointing_to(const std::vector<int64_t>& targets) {
  const auto num_tokens = std::ssize(targets);
  std::vector<float> pattern(num_tokens * num_tokens, 0.0f);
  for (int64_t i = 0; i < num_tokens; ++i) pattern[i * num_tokens + targets[i]] = 1.0f;
  return pattern;
}

HeadProfile profile_of(const std::vector<float>& pattern, int64_t num_tokens,
                       std::vector<int64_t> special = {}) {
  return head_profiles(pattern, 1, num_tokens, special).at(0);
}

TEST(HeadProfileTest, UniformAttentionHasTheWholeEntropyAndTheKnownDistance) {
  for (const int64_t T : {2, 4, 16}) {
    const auto t = static_cast<double>(T);
    const std::vector<float> pattern(T * T, 1.0f / static_cast<float>(T));
    const HeadProfile profile = profile_of(pattern, T, {0, T - 1});
    EXPECT_NEAR(profile.entropy, std::log(t), 1e-12);
    EXPECT_NEAR(profile.entropy_share, 1.0, 1e-12);
    EXPECT_NEAR(profile.mean_distance, (t * t - 1) / (3 * t), 1e-12);
    EXPECT_NEAR(profile.self, 1 / t, 1e-12);
    EXPECT_NEAR(profile.previous, 1 / t, 1e-12);
    EXPECT_NEAR(profile.next, 1 / t, 1e-12);
    EXPECT_NEAR(profile.first, 1 / t, 1e-12);
    EXPECT_NEAR(profile.special, 2 / t, 1e-12);
    EXPECT_FALSE(profile.positional_offset.has_value());
    EXPECT_EQ(profile.positional_share, 0.0);
  }
}

// The same pattern without the rows and columns of its first and last token.
TEST(HeadProfileTest, TextNeighboursAreThoseOfThePatternWithoutSpecialTokens) {
  constexpr int64_t T = 6;
  std::mt19937 random(7);
  std::vector<float> whole(T * T), inner;
  for (float& weight : whole) weight = std::uniform_real_distribution<float>()(random);
  for (int64_t i = 1; i < T - 1; ++i) {
    const auto row = whole.begin() + i * T;
    const float sum = std::accumulate(row + 1, row + T - 1, 0.0f);
    std::transform(row + 1, row + T - 1, std::back_inserter(inner),
                   [&](float weight) { return weight / sum; });
  }
  const HeadProfile want = profile_of(inner, T - 2), found = profile_of(whole, T, {0, T - 1});
  EXPECT_NEAR(found.text_previous, want.previous, 1e-6);
  EXPECT_NEAR(found.text_next, want.next, 1e-6);
  EXPECT_NEAR(want.text_previous, want.previous, 1e-6);
  EXPECT_EQ(profile_of(whole, T, {0, 1, 3, 5}).text_previous, 0.0) << "no such pair of rows";
}

TEST(HeadProfileTest, AttendingToOneselfHasNoEntropyAndNoDistance) {
  const HeadProfile profile = profile_of(pointing_to({0, 1, 2, 3}), 4);
  EXPECT_EQ(profile.self, 1.0);
  EXPECT_EQ(profile.entropy, 0.0);
  EXPECT_EQ(profile.mean_distance, 0.0);
  EXPECT_EQ(profile.first, 0.25);
  EXPECT_FALSE(profile.positional_offset.has_value());
}

TEST(HeadProfileTest, AHeadThatShiftsIsPositional) {
  // The first row has no previous token; where it looks does not matter.
  for (const int64_t first : {0, 3, 4}) {
    const HeadProfile previous = profile_of(pointing_to({first, 0, 1, 2, 3}), 5);
    EXPECT_EQ(previous.positional_offset, -1);
    EXPECT_EQ(previous.positional_share, 1.0);
    EXPECT_EQ(previous.previous, 1.0);
    EXPECT_EQ(previous.entropy, 0.0);
  }
  const HeadProfile next = profile_of(pointing_to({1, 2, 3, 4, 0}), 5);
  EXPECT_EQ(next.positional_offset, 1);
  EXPECT_EQ(next.next, 1.0);
  EXPECT_EQ(next.by_offset.front(), 1.0);  // from the last token to the first
}

TEST(HeadProfileTest, NineRowsOfTenAreEnoughAndFewerAreNot) {
  std::vector<int64_t> targets = {0, 0, 1, 2, 3, 4,
                                  5, 6, 7, 8, 9};  // ten rows have a previous token
  targets[4] = 9;
  EXPECT_EQ(profile_of(pointing_to(targets), 11).positional_offset, -1);
  EXPECT_DOUBLE_EQ(profile_of(pointing_to(targets), 11).positional_share, 0.9);
  targets[7] = 9;
  EXPECT_FALSE(profile_of(pointing_to(targets), 11).positional_offset.has_value());
  EXPECT_DOUBLE_EQ(profile_of(pointing_to(targets), 11).positional_share, 0.8);
}

TEST(HeadProfileTest, AnEqualNeighbourDoesNotLead) {
  std::vector<float> pattern = pointing_to({0, 0, 1, 2});
  pattern[2 * 4 + 1] = pattern[2 * 4 + 3] = 0.5f;
  EXPECT_DOUBLE_EQ(profile_of(pattern, 4).positional_share, 2.0 / 3);
}

TEST(HeadProfileTest, TextsOfOneAndTwoTokensHaveNoPositionalHeads) {
  const HeadProfile one = profile_of({1.0f}, 1, {0});
  EXPECT_EQ(one.by_offset, (std::vector<double>{1}));
  EXPECT_EQ(one.self, 1.0);
  EXPECT_EQ(one.first, 1.0);
  EXPECT_EQ(one.special, 1.0);
  EXPECT_EQ(one.previous + one.next + one.entropy + one.entropy_share, 0.0);
  EXPECT_EQ(one.positional_share, 0.0);
  const HeadProfile two = profile_of(pointing_to({1, 0}), 2);
  EXPECT_EQ(two.positional_share, 1.0);
  EXPECT_FALSE(two.positional_offset.has_value());
}

TEST(HeadProfileTest, AgreesWithAttentionByOffsetForEveryHeadOfAModel) {
  const auto model = drawn_model(3);
  const Trace trace = recorded(model, random_ids(*model, 20, 1), {Hook::kPattern});
  const Trace::Entry& pattern = trace.at(Hook::kPattern, 0);
  const int64_t H = pattern.shape[0], T = pattern.shape[1];
  const std::vector<HeadProfile> profiles = head_profiles(pattern.values, H, T);
  ASSERT_EQ(std::ssize(profiles), H);
  double distance = 0;
  for (int64_t h = 0; h < H; ++h) {
    const HeadProfile& profile = profiles[h];
    const auto head = std::span(pattern.values).subspan(h * T * T, T * T);
    EXPECT_EQ(profile.by_offset, attention_by_offset(head, 1, T));
    EXPECT_EQ(profile.previous, profile.by_offset[T - 2]);
    EXPECT_EQ(profile.self, profile.by_offset[T - 1]);
    EXPECT_EQ(profile.next, profile.by_offset[T]);
    EXPECT_GT(profile.entropy, 0.0);
    EXPECT_LE(profile.entropy_share, 1 + 1e-6);
    distance += profile.mean_distance / static_cast<double>(H);
  }
  EXPECT_NEAR(distance, mean_attention_distance(pattern.values, H, T), 1e-12);
}

TEST(HeadProfileTest, ShapesAndPlacesThatDoNotFitAreRefused) {
  const std::vector<float> pattern(8, 0.5f);
  EXPECT_EQ(head_profiles(pattern, 2, 2).size(), 2u);
  EXPECT_THROW(head_profiles(pattern, 1, 2), InvalidArgument);
  EXPECT_THROW(head_profiles(pattern, 0, 2), InvalidArgument);
  EXPECT_THROW(head_profiles(pattern, 2, 2, {{2}}), InvalidArgument);
  EXPECT_THROW(head_profiles(pattern, 2, 2, {{0, -1}}), InvalidArgument);
}

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

TEST(BootstrapTest, TextsWithoutWeightAreLeftOutTheSeedDrawsTheSameAndSizesThatDoNotFitAreRefused) {
  const std::vector<double> sums = {1, -2, 5, 7, 1}, weights(5, 1.0);
  EXPECT_EQ(Bootstrap(5).ratio(sums, weights).low, Bootstrap(5, 1000, 1).ratio(sums, weights).low);
  EXPECT_NE(Bootstrap(5, 41, 1).ratio(sums, weights).low,
            Bootstrap(5, 41, 2).ratio(sums, weights).low);
  const Bootstrap bootstrap(3);
  const std::vector<double> one = {0, 6, 0}, weight = {0, 3, 0}, none(3);
  EXPECT_EQ(bootstrap.ratio(one, weight).low, 2);
  EXPECT_EQ(bootstrap.ratio(one, weight).high, 2);
  EXPECT_TRUE(std::isnan(bootstrap.ratio(none, none).low));
  EXPECT_THROW(Bootstrap(1), InvalidArgument);
  EXPECT_THROW(Bootstrap(65536), InvalidArgument);
  EXPECT_THROW(Bootstrap(5, 39), InvalidArgument);
  const std::vector<double> four(4, 1.0), five(5, 1.0);
  EXPECT_THROW(Bootstrap(5).ratio(four, five), InvalidArgument);
  EXPECT_THROW(Bootstrap(5).ratio(five, four), InvalidArgument);
}

}  // namespace
}  // namespace phasor
