// The recorder: what it keeps, how it is found again, and how overlapping windows are merged.
#include "tests/support/test.h"

namespace phasor {
namespace {

void send(Trace& trace, Hook hook, int64_t layer, int64_t sequence, int64_t first_token,
          const std::vector<int64_t>& shape, const std::vector<float>& values) {
  trace.observe({.hook = hook,
                 .layer = layer,
                 .sequence = sequence,
                 .first_token = first_token,
                 .shape = shape,
                 .values = values});
}

TEST(TraceTest, WantsItsHooksAtEveryLayerAndNoOthers) {
  const Trace trace{Hook::kFullEmbed, Hook::kResidPost};
  EXPECT_TRUE(trace.wants(Hook::kFullEmbed, -1));
  EXPECT_TRUE(trace.wants(Hook::kResidPost, 0));
  EXPECT_TRUE(trace.wants(Hook::kResidPost, 11));
  EXPECT_FALSE(trace.wants(Hook::kPattern, 0));
  const Trace everything = Trace::everything();
  for (int i = 0; i < kNumHooks; ++i) EXPECT_TRUE(everything.wants(static_cast<Hook>(i), 0));
}

TEST(TraceTest, KeepsACopyBySequenceAndLayer) {
  Trace trace{Hook::kResidPost, Hook::kFullEmbed};
  std::vector<float> values = {1, 2};
  send(trace, Hook::kResidPost, 0, 0, 0, {1, 2}, values);
  values = {3, 4};
  send(trace, Hook::kResidPost, 0, 1, 0, {1, 2}, values);
  send(trace, Hook::kResidPost, 1, 0, 0, {1, 2}, {5, 6});
  send(trace, Hook::kFullEmbed, -1, 0, 0, {2, 1}, {7, 8});
  EXPECT_EQ(trace.at(Hook::kResidPost, 0, 0).values, (std::vector<float>{1, 2}));
  EXPECT_EQ(trace.at(Hook::kResidPost, 0, 1).values, (std::vector<float>{3, 4}));
  EXPECT_EQ(trace.at(Hook::kResidPost, 1).values, (std::vector<float>{5, 6}));
  EXPECT_EQ(trace.at(Hook::kFullEmbed).shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(trace.at(Hook::kFullEmbed, 5).values, (std::vector<float>{7, 8}));  // layer ignored
  EXPECT_EQ(trace.num_layers(), 2);
}

TEST(TraceTest, WhatWasNotRecordedIsAnErrorThatNamesIt) {
  Trace trace{Hook::kResidPost};
  send(trace, Hook::kResidPost, 0, 0, 0, {1, 1}, {1});
  EXPECT_FALSE(trace.has(Hook::kPattern, 3));
  EXPECT_TRUE(trace.has(Hook::kResidPost, 0));
  expect_error<InvalidArgument>([&] { trace.at(Hook::kPattern, 3); },
                                {"blocks.3.attn.hook_pattern"});
  trace.clear();
  EXPECT_FALSE(trace.has(Hook::kResidPost, 0));
  EXPECT_EQ(trace.num_layers(), 0);
}

TEST(TraceTest, HiddenStatesArePostNormModelsNormalizedOnesAndPreNormModelsSums) {
  for (const bool post_norm : {true, false}) {
    Trace trace = Trace::hidden_states_and_attentions();
    send(trace, Hook::kFullEmbed, -1, 0, 0, {1, 1}, {10});
    for (int layer = 0; layer < 2; ++layer) {
      send(trace, Hook::kResidPost, layer, 0, 0, {1, 1}, {20.0f + layer});
      if (!post_norm) continue;
      send(trace, Hook::kNormalizedResidPost, layer, 0, 0, {1, 1}, {30.0f + layer});
    }
    if (!post_norm) send(trace, Hook::kFinalNorm, -1, 0, 0, {1, 1}, {40});
    EXPECT_EQ(trace.hidden_state(0).values[0], 10);
    EXPECT_EQ(trace.hidden_state(1).values[0], post_norm ? 30 : 20);
    EXPECT_EQ(trace.hidden_state(2).values[0], post_norm ? 31 : 40);
    EXPECT_THROW(trace.hidden_state(3), InvalidArgument);
  }
}

TEST(TraceTest, OverlappingWindowsOfRowsAreAveragedWhereTheyOverlap) {
  Trace trace{Hook::kResidPost, Hook::kQ};
  send(trace, Hook::kResidPost, 0, 0, 0, {3, 1}, {1, 2, 3});
  send(trace, Hook::kResidPost, 0, 0, 1, {3, 1}, {4, 6, 8});
  send(trace, Hook::kResidPost, 0, 0, 2, {3, 1}, {12, 20, 9});
  EXPECT_EQ(trace.at(Hook::kResidPost, 0).shape, (std::vector<int64_t>{5, 1}));
  EXPECT_EQ(trace.at(Hook::kResidPost, 0).values, (std::vector<float>{1, 3, 7, 14, 9}));

  send(trace, Hook::kQ, 0, 0, 0, {2, 1, 2}, {1, 2, 3, 4});  // [T, H, D]
  send(trace, Hook::kQ, 0, 0, 1, {2, 1, 2}, {5, 6, 7, 8});
  EXPECT_EQ(trace.at(Hook::kQ, 0).shape, (std::vector<int64_t>{3, 1, 2}));
  EXPECT_EQ(trace.at(Hook::kQ, 0).values, (std::vector<float>{1, 2, 4, 5, 7, 8}));
}

TEST(TraceTest, PatternsOfWindowsMergeAndAreZeroWhereTokensNeverMet) {
  Trace trace{Hook::kPattern};
  send(trace, Hook::kPattern, 0, 0, 0, {2, 2, 2}, {1, 2, 3, 4, 10, 20, 30, 40});
  send(trace, Hook::kPattern, 0, 0, 1, {2, 2, 2}, {6, 7, 8, 9, 60, 70, 80, 90});
  EXPECT_EQ(trace.at(Hook::kPattern, 0).shape, (std::vector<int64_t>{2, 3, 3}));
  EXPECT_EQ(trace.at(Hook::kPattern, 0).values, (std::vector<float>{1, 2, 0,     //
                                                                    3, 5, 7,     //
                                                                    0, 8, 9,     //
                                                                    10, 20, 0,   //
                                                                    30, 50, 70,  //
                                                                    0, 80, 90}));
}

TEST(TraceTest, ASecondRunReplacesTheFirst) {
  Trace trace{Hook::kResidPost};
  send(trace, Hook::kResidPost, 0, 0, 0, {2, 1}, {1, 2});
  send(trace, Hook::kResidPost, 0, 0, 1, {2, 1}, {4, 8});
  send(trace, Hook::kResidPost, 0, 0, 0, {1, 1}, {5});
  EXPECT_EQ(trace.at(Hook::kResidPost, 0).shape, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(trace.at(Hook::kResidPost, 0).values, (std::vector<float>{5}));
}

}  // namespace
}  // namespace phasor
