// Profiles of attention heads against patterns made by hand.
#include "tests/support/encoder_cases.h"

namespace phasor {
namespace {

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

}  // namespace
}  // namespace phasor
