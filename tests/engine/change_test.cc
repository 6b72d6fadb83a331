// What an observer may change: each hook against exact relations.
#include "tests/support/encoder_cases.h"

namespace phasor {
namespace {

std::vector<ModelConfig> configs() {
  ModelConfig post = small_config();
  post.num_layers = 3;
  post.max_positions = 40;
  post.position.kind = PositionKind::kLearned;
  ModelConfig pre = post;
  pre.norm_order = NormOrder::kPreNorm;
  pre.final_norm = true;
  pre.gated_mlp = true;
  ModelConfig rotary = pre;
  rotary.d_model = 36;
  rotary.num_heads = 3;
  rotary.position = {.rotary = RotaryConfig()};
  rotary.layer_attention = {{}, {.window = 3}, {}};
  return {post, pre, rotary};
}

bool is_map(Hook hook) { return hook == Hook::kAttnScores || hook == Hook::kPattern; }

/// A model of each of configs(), with each kind of kernels.
class ChangeTest : public testing::TestWithParam<std::tuple<KernelLibrary, size_t>> {
 protected:
  Encoder encoder_of(const RandomModelExtras& extras = {}) const {
    return Encoder(random_model(config_, 3, extras),
                   {.threads = 2, .kernels = std::get<KernelLibrary>(GetParam())});
  }
  std::vector<float> run(const TokenIds& ids, Observer* observer = nullptr) {
    return hidden_of(encoder_.encode_ids(ids, {.observer = observer}));
  }

  const ModelConfig config_ = configs().at(std::get<size_t>(GetParam()));
  Encoder encoder_ = encoder_of();
  const TokenIds ids_ = random_ids(encoder_.model(), 40, 1);
  const TokenIds others_ = random_ids(encoder_.model(), 40, 2);
};

TEST_P(ChangeTest, AChangeAtAnyHookReachesTheLastStates) {
  const std::vector<float> unchanged = run(ids_);
  Recorder all;
  run(others_, &all);
  for (const Recorder::Event& event : all.events()) {
    const bool positions = event.hook == Hook::kPosEmbed;
    Editor patch(event.hook, event.layer, [&](const HookEvent&, std::span<float> values) {
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = positions ? -values[i] : event.values[i];
      }
    });
    EXPECT_GT(largest_difference(run(ids_, &patch), unchanged), 1e-3)
        << hook_path(event.hook, event.layer);
  }
}

TEST_P(ChangeTest, AChangeToTheSameValuesChangesNothing) {
  Recorder all;
  const std::vector<float> expected = run(ids_, &all);
  for (const Recorder::Event& event : all.events()) {
    Editor same(event.hook, event.layer, [](const HookEvent&, std::span<float>) {});
    const std::vector<float> got = run(ids_, &same);
    EXPECT_EQ(same.calls, 1) << hook_path(event.hook, event.layer);
    if (is_map(event.hook)) {
      expect_close<float, float>(got, expected, 1e-5, hook_path(event.hook, event.layer));
    } else {
      expect_same_bits(got, expected, hook_path(event.hook, event.layer));
    }
  }
}

// What all later steps read, whole: from there on the run is the other one.
TEST_P(ChangeTest, AStateOfAnotherRunContinuesThatRun) {
  Recorder seen;
  const std::vector<float> expected = run(others_, &seen);
  for (const Recorder::Event& event : seen.events()) {
    const Hook hook = event.hook;
    if (hook != Hook::kFullEmbed && hook != Hook::kResidPre && hook != Hook::kResidMid &&
        hook != Hook::kNormalizedResidMid && hook != Hook::kResidPost &&
        hook != Hook::kNormalizedResidPost) {
      continue;
    }
    Editor patch(hook, event.layer, [&](const HookEvent&, std::span<float> values) {
      std::ranges::copy(event.values, values.begin());
    });
    expect_same_bits(run(ids_, &patch), expected, hook_path(hook, event.layer));
  }
}

/// A head whose z is 0 is one whose columns of the output matrix are 0.
TEST_P(ChangeTest, AHeadSetToZeroIsOneWithoutItsOutputWeights) {
  constexpr int64_t kLayer = 1, kHead = 2;
  const int64_t D = config_.head_dim(), width = config_.attention_width();
  Encoder without = encoder_of({.change = [&](Weights& weights) {
    const auto out = drawn_values(weights.blocks[kLayer].out.weight);
    for (int64_t row = 0; row < config_.d_model; ++row) {
      std::fill_n(&out[row * width + kHead * D], D, 0.0f);
    }
  }});
  const std::vector<float> expected = hidden_of(without.encode_ids(ids_));
  for (const Hook hook : {Hook::kZ, Hook::kPattern, Hook::kV}) {
    Editor ablate(hook, kLayer, [&](const HookEvent& event, std::span<float> values) {
      if (hook == Hook::kPattern) {  // [H, T, T]
        const int64_t map = event.shape[1] * event.shape[2];
        std::fill_n(&values[kHead * map], map, 0.0f);
        return;
      }
      for (int64_t t = 0; t < event.shape[0]; ++t) {  // [T, H, D]
        std::fill_n(&values[(t * event.shape[1] + kHead) * D], D, 0.0f);
      }
    });
    expect_close<float, float>(run(ids_, &ablate), expected, 1e-5, hook_path(hook, kLayer));
  }
}

/// Softmax ignores what is added to a whole row, and gives 0 where a score is −∞.
TEST_P(ChangeTest, ChangedScoresGoThroughSoftmax) {
  Recorder seen;
  const std::vector<float> unchanged = run(ids_, &seen);
  Editor shift(Hook::kAttnScores, 0, [](const HookEvent&, std::span<float> values) {
    for (float& score : values) score += 3;
  });
  expect_close<float, float>(run(ids_, &shift), unchanged, 1e-5, "shifted");

  // Every token sees itself alone: z is its v.
  Editor self(Hook::kAttnScores, 0, [](const HookEvent& event, std::span<float> values) {
    const int64_t T = event.shape[1];
    for (int64_t i = 0; i < std::ssize(values); ++i) {
      if (i % T != i / T % T) values[i] = -INFINITY;
    }
  });
  Editor copy(Hook::kZ, 0, [&](const HookEvent&, std::span<float> values) {
    std::ranges::copy(seen.values(Hook::kV, 0), values.begin());
  });
  expect_close<float, float>(run(ids_, &self), run(ids_, &copy), 1e-5, "self");
}

/// Also where the layer's window hides keys: equal scores or weights make z the mean of all v.
TEST_P(ChangeTest, EqualScoresAndWeightsMakeMeansAlsoBeyondAWindow) {
  constexpr int64_t kLayer = 1;
  Recorder seen;
  run(ids_, &seen);
  const std::vector<float>& v = seen.values(Hook::kV, kLayer);
  const int64_t tokens = std::ssize(ids_), width = std::ssize(v) / tokens;
  std::vector<float> mean(width);
  for (size_t i = 0; i < v.size(); ++i) mean[i % width] += v[i] / static_cast<float>(tokens);
  Editor means(Hook::kZ, kLayer, [&](const HookEvent&, std::span<float> values) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = mean[i % width];
  });
  const std::vector<float> expected = run(ids_, &means);
  for (const Hook hook : {Hook::kAttnScores, Hook::kPattern}) {
    Editor equal(hook, kLayer, [&](const HookEvent&, std::span<float> values) {
      std::ranges::fill(values, hook == Hook::kPattern ? 1 / static_cast<float>(tokens) : 0.0f);
    });
    expect_close<float, float>(run(ids_, &equal), expected, 1e-5, hook_path(hook, kLayer));
  }
}

/// An observer sees what it left. Where a score is −∞, changed or not, the pattern is 0.
TEST_P(ChangeTest, ChangedScoresAreSeenAndTheirPatternIsZeroWhereTheyAreHidden) {
  struct HideFirst : Recorder {
    HideFirst() : Recorder({Hook::kAttnScores, Hook::kPattern}) {}
    bool changes(Hook hook, int64_t) const override { return hook == Hook::kAttnScores; }
    void change(const HookEvent& event, std::span<float> scores) override {
      for (int64_t i = 0; i < std::ssize(scores); ++i) {
        const int64_t T = event.shape[2], query = i / T % T, key = i % T;
        if (key == 0 && query > 0) scores[i] = -INFINITY;
      }
    }
  } hidden;
  run(ids_, &hidden);
  for (const Recorder::Event& event : hidden.events()) {
    const float unseen = event.hook == Hook::kPattern ? 0 : -INFINITY;
    const int64_t T = event.shape[2], window = config_.window(event.layer);
    for (int64_t i = 0; i < std::ssize(event.values); ++i) {
      const int64_t query = i / T % T, key = i % T;
      const bool far = window > 0 && std::abs(query - key) > window;
      EXPECT_EQ(event.values[i] == unseen, far || (key == 0 && query > 0)) << query << ", " << key;
    }
  }
}

constexpr const char* kConfigNames[] = {"PostNorm", "PreNorm", "RotaryWithWindow"};
INSTANTIATE_TEST_SUITE_P(, ChangeTest,
                         testing::Combine(testing::ValuesIn(kKernels),
                                          testing::Range<size_t>(0, 3)),
                         [](const auto& info) {
                           return std::string(to_string(std::get<KernelLibrary>(info.param))) +
                                  "_" + kConfigNames[std::get<size_t>(info.param)];
                         });

}  // namespace
}  // namespace phasor
