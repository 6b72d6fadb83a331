// Parts are subtracted and replaced exactly where they are said to be, and nothing else changes.
#include "tests/support/encoder_cases.h"

namespace phasor {
namespace {

// Without low ids, some of which are padding and shift the positions of what follows.
const TokenIds kFirstIds = {6, 5, 9, 4, 7}, kSecondIds = {5, 5, 8};

std::vector<float> last_states(const std::shared_ptr<const Model>& model,
                               const std::vector<TokenIds>& sequences, Observer* observer,
                               int64_t first_block = 0) {
  const Encoding encoding =
      Encoder(model, {.threads = 1})
          .encode_ids(sequences, {.observer = observer, .first_block = first_block});
  std::vector<float> states;
  for (int64_t i = 0; i < std::ssize(sequences); ++i) {
    const auto hidden = encoding[i].hidden;
    states.insert(states.end(), hidden.begin(), hidden.end());
  }
  return states;
}

TEST(CausesTest, HeadsSumToWhatAttentionWrites) {
  std::vector<uint64_t> seeds;
  for (uint64_t n = 1; n <= 20; ++n) seeds.insert(seeds.end(), {n, kFirstBlocksSeed + n});
  int normed = 0;
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto model = drawn_model(seed);
    const bool norms = model->config().branch_norms;  // the bias of W_o, too, where there is one
    if (norms && model->config().linear_bias) continue;
    normed += norms ? 1 : 0;
    const Trace trace = recorded(model, std::vector{kSecondIds, random_ids(*model, 6, seed)},
                                 {Hook::kZ, Hook::kAttnOut});
    for (int64_t layer = 0; layer < model->config().num_layers; ++layer) {
      const auto heads = head_outputs(*model, trace, layer, 1);
      ASSERT_EQ(std::ssize(heads), model->config().num_heads);
      std::vector<float> sum(heads[0].size());
      const BlockWeights& block = model->weights().blocks[model->config().block_of(layer)];
      const Tensor& bias = norms ? block.attn_branch_norm.bias : block.out.bias;
      if (bias.present()) {
        const std::vector<float> row = bias.to_float();
        for (size_t i = 0; i < sum.size(); ++i) sum[i] = row[i % row.size()];
      }
      for (const std::vector<float>& head : heads) {
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += head[i];
      }
      expect_close(std::span<const float>(sum),
                   std::span<const float>(trace.at(Hook::kAttnOut, layer, 1).values), 1e-5,
                   "heads");
    }
  }
  EXPECT_GT(normed, 1);
}

TEST(CausesTest, WhatIsSubtractedIsMissingThereAndChangesNothingBefore) {
  /// Records what passes after another observer's changes.
  struct Both : Trace {
    Both(Observer& changing, const Trace& trace) : Trace(trace), changing(changing) {}
    bool changes(Hook hook, int64_t layer) const override { return changing.changes(hook, layer); }
    void change(const HookEvent& event, std::span<float> values) override {
      changing.change(event, values);
    }
    Observer& changing;
  };
  const Trace all{Hook::kFullEmbed, Hook::kAttnOut, Hook::kMlpOut, Hook::kResidPost};
  for (const uint64_t seed : {1, 2, 3, 4}) {
    const auto model = drawn_model(seed);
    const int64_t C = model->config().d_model, last = model->config().num_layers - 1;
    const Trace before = recorded(model, std::vector{kFirstIds, kSecondIds}, all);
    std::vector<std::vector<float>> parts;
    for (const size_t tokens : {kFirstIds.size(), kSecondIds.size()}) {
      std::vector<float>& part = parts.emplace_back(tokens * C);
      for (size_t i = 0; i < part.size(); ++i) part[i] = std::sin(static_cast<float>(i));
    }
    Subtraction subtraction(Hook::kMlpOut, last, parts);
    Both both(subtraction, all);
    last_states(model, {kFirstIds, kSecondIds}, &both);
    for (int64_t i = 0; i < 2; ++i) {
      EXPECT_EQ(both.at(Hook::kAttnOut, last, i).values, before.at(Hook::kAttnOut, last, i).values);
      std::vector<float> want = before.at(Hook::kMlpOut, last, i).values;
      for (size_t k = 0; k < want.size(); ++k) want[k] -= parts[i][k];
      EXPECT_EQ(both.at(Hook::kMlpOut, last, i).values, want);
      EXPECT_NE(both.at(Hook::kResidPost, last, i).values,
                before.at(Hook::kResidPost, last, i).values);
    }
  }
}

TEST(CausesTest, APatchOfTheWholeStreamIsTheOtherRunFromThereOn) {
  for (const uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    const auto model = drawn_model(seed);
    const TokenIds other = {8, 4, 4, 7, 10};
    const Trace trace = recorded(model, std::vector{other}, {Hook::kResidPre});
    for (int64_t layer = 0; layer < model->config().num_layers; ++layer) {
      Patch patch(Hook::kResidPre, layer, trace);
      EXPECT_EQ(last_states(model, {kFirstIds}, &patch), last_states(model, {other}, nullptr));
      EXPECT_EQ(last_states(model, {kFirstIds}, &patch, layer),
                last_states(model, {other}, nullptr));
      EXPECT_NE(last_states(model, {kFirstIds}, &patch), last_states(model, {kFirstIds}, nullptr));
    }
  }
}

TEST(CausesTest, RandomRowsHaveTheLengthsAndOtherDirections) {
  std::vector<float> rows(40 * 64);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i / 64);  // row 0: zeros
  const std::vector<float> random = random_rows(rows, 64, 7);
  double cosines = 0;
  for (size_t t = 0; t < 40; ++t) {
    double length = 0, product = 0;
    for (size_t c = 0; c < 64; ++c) {
      length += random[t * 64 + c] * random[t * 64 + c];
      product += random[t * 64 + c];
    }
    EXPECT_NEAR(std::sqrt(length), 8.0 * static_cast<double>(t), 1e-4);
    if (t > 0) cosines += product / (8 * std::sqrt(length)) / 39;
  }
  EXPECT_LT(std::abs(cosines), 4 / std::sqrt(39.0 * 64));
  EXPECT_EQ(random, random_rows(rows, 64, 7));
  EXPECT_NE(random, random_rows(rows, 64, 8));
}

TEST(CausesTest, WhatDoesNotFitIsRefused) {
  const auto model = drawn_model(1);
  const Trace trace = recorded(model, std::vector{kFirstIds}, {Hook::kZ, Hook::kResidPre});
  EXPECT_THROW(head_outputs(*model, trace, -1), InvalidArgument);
  EXPECT_THROW(head_outputs(*model, trace, model->config().num_layers), InvalidArgument);
  EXPECT_THROW(head_outputs(*model, Trace{Hook::kAttnOut}, 0), InvalidArgument);
  EXPECT_THROW(random_rows(std::vector<float>(5), 2, 1), InvalidArgument);
  Subtraction short_part(Hook::kAttnOut, 0, {std::vector<float>(3)});
  EXPECT_THROW(last_states(model, {kFirstIds}, &short_part), InvalidArgument);
  Subtraction one_part(Hook::kAttnOut, 0,
                       {std::vector<float>(kFirstIds.size() * model->config().d_model)});
  EXPECT_THROW(last_states(model, {kFirstIds, kFirstIds}, &one_part), InvalidArgument);
  Patch of_another(Hook::kResidPre, 0, trace);
  EXPECT_THROW(last_states(model, {kSecondIds}, &of_another), InvalidArgument);
  for (const int64_t layer : {int64_t{-1}, int64_t{1}, model->config().num_layers})
    EXPECT_THROW(last_states(model, {kFirstIds}, &of_another, layer), InvalidArgument);
  EXPECT_THROW(last_states(model, {kFirstIds}, nullptr, 1), InvalidArgument);
  Patch unrecorded(Hook::kAttnOut, 0, trace);
  EXPECT_THROW(last_states(model, {kFirstIds}, &unrecorded), InvalidArgument);
}

}  // namespace
}  // namespace phasor
