// What an observer may change: each hook against exact relations.
#include "tests/support/encoder_cases.h"

namespace phasor {
namespace {

std::vector<ModelConfig> configs() {
  ModelConfig post = small_config();
  post.num_layers = 3;
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

std::vector<float> run(Encoder& encoder, const TokenIds& ids, Observer* observer = nullptr) {
  return hidden_of(encoder.encode_ids(ids, {.observer = observer}));
}

bool is_map(Hook hook) { return hook == Hook::kAttnScores || hook == Hook::kPattern; }

class ChangeTest : public testing::TestWithParam<KernelLibrary> {};

TEST_P(ChangeTest, AChangeAtAnyHookReachesTheLastStates) {
  for (const ModelConfig& config : configs()) {
    const auto model = random_model(config, 3);
    Encoder encoder(model, {.threads = 2, .kernels = GetParam()});
    const TokenIds ids = random_ids(*model, 12, 1);
    const std::vector<float> unchanged = run(encoder, ids);
    Recorder all;
    run(encoder, random_ids(*model, 12, 2), &all);
    for (const Recorder::Event& event : all.events()) {
      if (event.hook == Hook::kTokenTypeEmbed) continue;  // the same for all tokens
      const bool positions = event.hook == Hook::kPosEmbed;
      Editor patch(event.hook, event.layer, [&](const HookEvent&, std::span<float> values) {
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] = positions ? -values[i] : event.values[i];
        }
      });
      EXPECT_GT(largest_difference(run(encoder, ids, &patch), unchanged), 1e-3)
          << hook_path(event.hook, event.layer);
    }
  }
}

TEST_P(ChangeTest, AChangeToTheSameValuesChangesNothing) {
  for (const ModelConfig& config : configs()) {
    const auto model = random_model(config, 3);
    const TokenIds ids = random_ids(*model, 12, 1);
    Encoder encoder(model, {.threads = 2, .kernels = GetParam()});
    const std::vector<float> expected = run(encoder, ids);
    Recorder all;
    run(encoder, ids, &all);
    for (const Recorder::Event& event : all.events()) {
      Editor same(event.hook, event.layer, [](const HookEvent&, std::span<float>) {});
      const std::vector<float> got = run(encoder, ids, &same);
      EXPECT_EQ(same.calls, 1) << hook_path(event.hook, event.layer);
      if (is_map(event.hook)) {
        expect_close<float, float>(got, expected, 1e-5, hook_path(event.hook, event.layer));
      } else {
        expect_same_bits(got, expected, hook_path(event.hook, event.layer));
      }
    }
  }
}

// What all later steps read, whole: from there on the run is the other one.
TEST_P(ChangeTest, AStateOfAnotherRunContinuesThatRun) {
  for (const ModelConfig& config : configs()) {
    const auto model = random_model(config, 4);
    const TokenIds ids = random_ids(*model, 12, 1), others = random_ids(*model, 12, 2);
    Encoder encoder(model, {.kernels = GetParam()});
    Recorder seen;
    const std::vector<float> expected = run(encoder, others, &seen);
    const auto state =
        config.norm_order == NormOrder::kPostNorm ? Hook::kNormalizedResidPost : Hook::kResidPost;
    std::vector<std::pair<Hook, int64_t>> places = {{Hook::kFullEmbed, -1}};
    for (int64_t layer = 0; layer < config.num_layers; ++layer) {
      places.push_back({Hook::kResidPre, layer});
      places.push_back({Hook::kResidMid, layer});
      places.push_back({Hook::kResidPost, layer});
      places.push_back({state, layer});
    }
    for (const auto& [hook, layer] : places) {
      const std::vector<float>& theirs = seen.values(hook, layer);
      Editor patch(hook, layer, [&](const HookEvent&, std::span<float> values) {
        std::ranges::copy(theirs, values.begin());
      });
      expect_same_bits(run(encoder, ids, &patch), expected, hook_path(hook, layer));
    }
  }
}

/// A head whose z is 0 is one whose columns of the output matrix are 0.
TEST_P(ChangeTest, AHeadSetToZeroIsOneWithoutItsOutputWeights) {
  for (const ModelConfig& config : configs()) {
    constexpr int64_t kLayer = 1, kHead = 2;
    const int64_t D = config.head_dim(), width = config.attention_width();
    const auto model = random_model(config, 5);
    const auto without = random_model(config, 5, {.change = [&](Weights& weights) {
                                        const auto out =
                                            drawn_values(weights.blocks[kLayer].out.weight);
                                        for (int64_t row = 0; row < config.d_model; ++row) {
                                          std::fill_n(&out[row * width + kHead * D], D, 0.0f);
                                        }
                                      }});
    const TokenIds ids = random_ids(*model, 9, 1);
    Encoder encoder(model, {.kernels = GetParam()}), expected(without, {.kernels = GetParam()});
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
      expect_close<float, float>(run(encoder, ids, &ablate), run(expected, ids), 1e-5,
                                 hook_path(hook, kLayer));
    }
  }
}

/// Softmax ignores what is added to a whole row, and gives 0 where a score is −∞.
TEST_P(ChangeTest, ChangedScoresGoThroughSoftmax) {
  for (const ModelConfig& config : configs()) {
    const auto model = random_model(config, 6);
    const TokenIds ids = random_ids(*model, 11, 1);
    Encoder encoder(model, {.kernels = GetParam()});
    Editor shift(Hook::kAttnScores, 0, [](const HookEvent&, std::span<float> values) {
      for (float& score : values) score += 3;
    });
    expect_close<float, float>(run(encoder, ids, &shift), run(encoder, ids), 1e-5, "shifted");

    // Every token sees itself alone: z is its v.
    Recorder seen;
    run(encoder, ids, &seen);
    Editor self(Hook::kAttnScores, 0, [](const HookEvent& event, std::span<float> values) {
      const int64_t T = event.shape[1];
      for (int64_t i = 0; i < std::ssize(values); ++i) {
        if (i % T != i / T % T) values[i] = -std::numeric_limits<float>::infinity();
      }
    });
    Editor copy(Hook::kZ, 0, [&](const HookEvent&, std::span<float> values) {
      std::ranges::copy(seen.values(Hook::kV, 0), values.begin());
    });
    expect_close<float, float>(run(encoder, ids, &self), run(encoder, ids, &copy), 1e-5, "self");
  }
}

/// Also where the layer's window hides keys: equal scores or weights make z the mean of all v.
TEST_P(ChangeTest, ChangedMapsReachBeyondAWindow) {
  constexpr int64_t kLayer = 1, kTokens = 40;
  const auto model = random_model(configs().back(), 8);
  ASSERT_GT(model->config().window(kLayer), 0);
  const TokenIds ids = random_ids(*model, kTokens, 1);
  Encoder encoder(model, {.kernels = GetParam()});
  Recorder seen;
  run(encoder, ids, &seen);
  const std::vector<float>& v = seen.values(Hook::kV, kLayer);
  const int64_t width = std::ssize(v) / kTokens;
  std::vector<float> mean(width);
  for (size_t i = 0; i < v.size(); ++i) mean[i % width] += v[i] / kTokens;
  Editor means(Hook::kZ, kLayer, [&](const HookEvent&, std::span<float> values) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = mean[i % width];
  });
  const std::vector<float> expected = run(encoder, ids, &means);
  for (const Hook hook : {Hook::kAttnScores, Hook::kPattern}) {
    Editor equal(hook, kLayer, [&](const HookEvent&, std::span<float> values) {
      std::ranges::fill(values, hook == Hook::kPattern ? 1.0f / kTokens : 0.0f);
    });
    expect_close<float, float>(run(encoder, ids, &equal), expected, 1e-5, hook_path(hook, kLayer));
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
        if (key == 0 && query > 0) scores[i] = -std::numeric_limits<float>::infinity();
      }
    }
  };
  for (const ModelConfig& config : configs()) {
    const auto model = random_model(config, 9);
    HideFirst hidden;
    Encoder(model, {.kernels = GetParam()})
        .encode_ids(random_ids(*model, 12, 1), {.observer = &hidden});
    for (const Recorder::Event& event : hidden.events()) {
      const int64_t T = event.shape[2], window = config.window(event.layer);
      for (int64_t i = 0; i < std::ssize(event.values); ++i) {
        const int64_t query = i / T % T, key = i % T;
        const bool far = window > 0 && std::abs(query - key) > window;
        const float unseen = event.hook == Hook::kPattern ? 0 : -INFINITY;
        EXPECT_EQ(event.values[i] == unseen, far || (key == 0 && query > 0)) << query << "," << key;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, ChangeTest, testing::ValuesIn(kKernels),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace
}  // namespace phasor
