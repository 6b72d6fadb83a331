// Norms, angles, attention and predictions against values known exactly.
#include "tests/support/draw.h"
#include "tests/support/encoder_cases.h"

namespace phasor {
namespace {

TEST(MeanNormTest, IsTheMeanOfTheRowsLengthsSummedInDouble) {
  EXPECT_DOUBLE_EQ(mean_norm(std::vector<float>{3, 4, 0, 0}, 2), 2.5);
  EXPECT_DOUBLE_EQ(mean_norm(std::vector<float>{-2}, 1), 2.0);
  const std::vector<float> row = {4096, 1, 1, 1, 1};  // in float 2^24 + 1 is 2^24 again
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
  const std::vector<float> a = draw(35, 1), b = draw(35, 2);
  std::vector<float> longer = b;
  for (float& value : longer) value *= 4.0f;  // exact in float
  const double distance = mean_cosine_distance(a, b, 7);
  EXPECT_GT(distance, 0.1);
  EXPECT_NEAR(mean_cosine_distance(b, a, 7), distance, 1e-15);
  EXPECT_NEAR(mean_cosine_distance(a, longer, 7), distance, 1e-15);
  EXPECT_NEAR(mean_cosine_distance(a, a, 7), 0.0, 1e-15);
}

/// A pattern whose rows are positive and sum to 1.
std::vector<float> random_pattern(int64_t num_heads, int64_t num_tokens, uint64_t seed) {
  std::vector<float> pattern = draw(num_heads * num_tokens * num_tokens, seed);
  for (int64_t row = 0; row < num_heads * num_tokens; ++row) {
    const std::span values(&pattern[row * num_tokens], num_tokens);
    float sum = 0;
    for (float& value : values) sum += value += 1.0f;
    for (float& value : values) value /= sum;
  }
  return pattern;
}

TEST(AttentionByOffsetTest, AreMeansOverRowsAndGiveTheMeanDistance) {
  const std::vector<float> pattern = random_pattern(3, 7, 5);
  const std::vector<double> weights = attention_by_offset(pattern, 3, 7);
  ASSERT_EQ(weights.size(), 13u);
  double sum = 0, distance = 0;
  for (int d = -6; d <= 6; ++d) {
    const double rows = 7 - std::abs(d);
    EXPECT_GT(weights[d + 6], 0.0);
    sum += weights[d + 6] * rows / 7;
    distance += weights[d + 6] * rows / 7 * std::abs(d);
  }
  EXPECT_NEAR(sum, 1.0, 1e-6);
  EXPECT_DOUBLE_EQ(distance, mean_attention_distance(pattern, 3, 7));
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

TEST(ScoreTokensTest, EqualLogitsLoseTheLogarithmOfTheVocabulary) {
  const std::vector<TokenScore> scores =
      score_tokens(std::vector<float>(24, 1e4f), 8, std::vector<int32_t>{0, 7, 3});
  ASSERT_EQ(scores.size(), 3u);
  for (const TokenScore& score : scores) {
    EXPECT_NEAR(score.loss, std::log(8.0), 1e-12);
    EXPECT_EQ(score.rank, 0);
  }
}

TEST(ScoreTokensTest, LossIsTheLogarithmOfTheProbabilityAndRankCountsTheHigher) {
  const std::vector<float> logits = {0.5f, 2.0f, 1.25f};
  const double sum = std::exp(0.5) + std::exp(2.0) + std::exp(1.25);
  for (int32_t id = 0; id < 3; ++id) {
    const TokenScore score = score_tokens(logits, 3, {&id, 1}).at(0);
    EXPECT_NEAR(score.loss, -std::log(std::exp(static_cast<double>(logits[id])) / sum), 1e-14);
    EXPECT_EQ(score.rank, (std::vector<int64_t>{2, 0, 1})[id]);
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

}  // namespace
}  // namespace phasor
