// What an observer sees and may change: the exact relations between hooks, the order of events,
// that looking changes nothing, and what the recorder keeps of it.
#include "tests/support/encoder_cases.h"

namespace phasor {
namespace {

std::shared_ptr<const Model> observed_model(NormOrder order) {
  ModelConfig config = small_config({.kind = PositionKind::kLearned});
  config.norm_order = order;
  config.final_norm = order == NormOrder::kPreNorm;
  config.num_layers = 3;
  return random_model(config, 31, {.token_types = 1});
}

/// A batch of 9 and 4 tokens, seen at every hook. Most rows, of 15 floats, fill no whole vector.
struct Observed {
  explicit Observed(NormOrder order)
      : model(observed_model(order)),
        encoding(Encoder(model).encode_ids(
            std::vector<TokenIds>{random_ids(*model, 9, 1), random_ids(*model, 4, 2)},
            {.observer = &recorder})) {}

  std::shared_ptr<const Model> model;
  Recorder recorder;
  Encoding encoding;
};

TEST(HooksTest, PathsAreTransformerLens) {
  EXPECT_EQ(hook_path(Hook::kTokenEmbed, -1), "hook_embed");
  EXPECT_EQ(hook_path(Hook::kPosEmbed, -1), "hook_pos_embed");
  EXPECT_EQ(hook_path(Hook::kFullEmbed, 7), "hook_full_embed");
  EXPECT_EQ(hook_path(Hook::kMlpPost, 0), "blocks.0.mlp.hook_post");
  EXPECT_EQ(hook_path(Hook::kNormalizedResidPost, 2), "blocks.2.hook_normalized_resid_post");
  EXPECT_EQ(hook_path(Hook::kFinalNorm, -1), "ln_final.hook_normalized");
  std::set<std::string> paths;
  for (int i = 0; i < kNumHooks; ++i) {
    const auto hook = static_cast<Hook>(i);
    paths.insert(hook_path(hook, 5));
    EXPECT_EQ(is_block_hook(hook), hook_path(hook, 5).starts_with("blocks.5."));
  }
  EXPECT_EQ(static_cast<int>(paths.size()), kNumHooks);
}

/// Every hook by itself, then several together.
std::vector<std::vector<Hook>> hook_subsets() {
  std::vector<std::vector<Hook>> subsets;
  for (int i = 0; i < kNumHooks; ++i) subsets.push_back({static_cast<Hook>(i)});
  subsets.push_back({Hook::kFullEmbed, Hook::kResidMid, Hook::kResidPost, Hook::kPattern});
  subsets.push_back({Hook::kAttnOut, Hook::kMlpOut, Hook::kMlpPost});
  subsets.push_back({});  // Recorder: all
  return subsets;
}

TEST(HooksTest, WhateverIsObservedTheRunAndWhatIsSeenAreTheSame) {
  const std::pair<NormOrder, Precision> cases[] = {{NormOrder::kPreNorm, Precision::kFloat32},
                                                   {NormOrder::kPostNorm, Precision::kFloat32},
                                                   {NormOrder::kPostNorm, Precision::kInt8}};
  for (const auto& [order, precision] : cases) {
    const Observed run(order);
    Encoder encoder(run.model, {.threads = 2, .precision = precision});
    const std::vector<TokenIds> batch = {random_ids(*run.model, 9, 1), random_ids(*run.model, 4, 2),
                                         random_ids(*run.model, 12, 3)};
    const Encoding unobserved = encoder.encode_ids(batch);
    Recorder all;
    encoder.encode_ids(batch, {.observer = &all});
    for (const std::vector<Hook>& hooks : hook_subsets()) {
      Recorder recorder(hooks);
      const Encoding observed = encoder.encode_ids(batch, {.observer = &recorder});
      const std::string what = "observing " + (hooks.empty() ? "all" : hook_path(hooks[0], 0)) +
                               " and " + std::to_string(hooks.size()) + " in all";
      for (int64_t i = 0; i < 3; ++i)
        expect_same_bits(observed[i].hidden, unobserved[i].hidden, what);
      for (const auto& event : recorder.events())
        expect_close<float, float>(event.values,
                                   all.values(event.hook, event.layer, event.sequence), 1e-5, what);
    }
  }
}

/// Asked before it is told anything, and told by one thread at a time.
struct Diary : Recorder {
  bool wants(Hook hook, int64_t layer) const override {
    EXPECT_TRUE(events().empty()) << "wants() after observe()";
    asked.insert({hook, layer});
    return true;
  }
  void observe(const HookEvent& event) override {
    EXPECT_FALSE(listening.exchange(true)) << "two calls at once";
    Recorder::observe(event);
    std::this_thread::yield();
    listening = false;
  }
  std::vector<std::pair<int64_t, Hook>> order_of(int64_t sequence) const {
    std::vector<std::pair<int64_t, Hook>> order;
    for (const Event& event : events())
      if (event.sequence == sequence) order.emplace_back(event.layer, event.hook);
    return order;
  }
  mutable std::set<std::pair<Hook, int64_t>> asked;
  std::atomic<bool> listening = false;
};

TEST(HooksTest, EventsOfASequenceComeInTheOrderOfTheForwardPassOneAtATime) {
  const Observed run(NormOrder::kPreNorm);
  std::vector<TokenIds> batch;  // ten for each thread: of one length, or all would share one group
  for (int i = 0; i < 40; ++i) batch.push_back(random_ids(*run.model, 9, i));
  Diary alone, diary;
  Encoder(run.model, {.threads = 1}).encode_ids(batch[0], {.observer = &alone});
  Encoder(run.model, {.threads = 4}).encode_ids(batch, {.observer = &diary});
  const auto order = alone.order_of(0);
  const auto first_block = std::ranges::find(order, std::pair(int64_t{0}, Hook::kResidPre));
  EXPECT_TRUE(std::is_sorted(first_block, order.end() - 1));  // ln_final.hook_normalized, layer −1
  EXPECT_EQ(order.back().second, Hook::kFinalNorm);
  for (int64_t i = 0; i < 40; ++i) EXPECT_EQ(diary.order_of(i), order) << i;
  EXPECT_EQ(diary.asked.size(), find_hooks("all", 3).size());
}

TEST(HooksTest, WindowsArePutTogetherTheSameOnAnyNumberOfThreads) {
  const Observed run(NormOrder::kPostNorm);
  std::vector<TokenIds> batch;
  for (int i = 0; i < 6; ++i) batch.push_back(random_ids(*run.model, 30 + 9 * i, i));
  Trace expected = Trace::everything();
  Encoder(run.model, {.threads = 1})
      .encode_ids(batch, {.observer = &expected, .overflow = Overflow::kWindow});
  for (int round = 0; round < 20; ++round) {
    Trace trace = Trace::everything();
    Encoder(run.model, {.threads = 4})
        .encode_ids(batch, {.observer = &trace, .overflow = Overflow::kWindow});
    for (int64_t i = 0; i < std::ssize(batch); ++i) {
      for (const Hook hook : {Hook::kPattern, Hook::kResidPost})
        expect_same_bits(trace.at(hook, 2, i).values, expected.at(hook, 2, i).values,
                         hook_path(hook, 2) + " of sequence " + std::to_string(i));
    }
  }
}

struct Thrower : Observer {
  bool wants(Hook hook, int64_t) const override { return hook == Hook::kPattern; }
  void observe(const HookEvent& event) override {
    if (event.layer != 1) return;
    ++thrown;
    throw std::logic_error("enough");
  }
  int thrown = 0;
};

TEST(HooksTest, WhatAnObserverThrowsLeavesEncodeOnceAndTheEncoderStaysUsable) {
  const Observed run(NormOrder::kPostNorm);
  Encoder encoder(run.model, {.threads = 2});
  const TokenIds ids = random_ids(*run.model, 9, 1);
  for (const size_t count : {1, 20}) {  // one group, and several
    Thrower thrower;
    const std::vector<TokenIds> batch(count, ids);
    EXPECT_THROW(encoder.encode_ids(batch, {.observer = &thrower}), std::logic_error);
    EXPECT_EQ(thrower.thrown, 1);
    expect_same_bits(hidden_of(encoder.encode_ids(ids)), run.encoding[0].hidden, "after");
  }
}

TEST(HooksTest, AreFoundByPathByTheEndOfAPathAndAllTogether) {
  const auto found = [](std::string_view name) {
    std::vector<std::string> paths;
    for (const auto& [hook, layer] : find_hooks(name, 2)) paths.push_back(hook_path(hook, layer));
    return paths;
  };
  using Paths = std::vector<std::string>;
  const Paths patterns = {"blocks.0.attn.hook_pattern", "blocks.1.attn.hook_pattern"};
  EXPECT_EQ(found("attn.hook_pattern"), patterns);
  EXPECT_EQ(found("pattern"), patterns);
  EXPECT_EQ(found("blocks.1.attn.hook_pattern"), Paths{patterns[1]});
  EXPECT_EQ(found("embed"), Paths{"hook_embed"});
  const Paths all = found("all");
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
  EXPECT_EQ(all.size(), 4 + 2 * 17 + 1u);
  for (const char* const none : {"", "hook_nothing", "blocks.2.attn.hook_pattern", "attn"})
    EXPECT_THROW(find_hooks(none, 2), InvalidArgument) << none;
}

void send(Trace& trace, Hook hook, int64_t layer, int64_t sequence, int64_t first_token,
          const std::vector<int64_t>& shape, const std::vector<float>& values) {
  trace.observe({.hook = hook,
                 .layer = layer,
                 .sequence = sequence,
                 .first_token = first_token,
                 .shape = shape,
                 .values = values});
}

TEST(TraceTest, KeepsACopyBySequenceAndLayerAndNamesWhatWasNotRecorded) {
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
  EXPECT_FALSE(trace.has(Hook::kPattern, 3));
  EXPECT_TRUE(trace.has(Hook::kResidPost, 0));
  EXPECT_INVALID(trace.at(Hook::kPattern, 3), {"blocks.3.attn.hook_pattern"});
  trace.clear();
  EXPECT_FALSE(trace.has(Hook::kResidPost, 0));
  EXPECT_EQ(trace.num_layers(), 0);
}

TEST(TraceTest, OverlappingWindowsOfRowsAreAveragedAndASecondRunReplacesTheFirst) {
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
  send(trace, Hook::kResidPost, 0, 0, 0, {1, 1}, {5});
  EXPECT_EQ(trace.at(Hook::kResidPost, 0).shape, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(trace.at(Hook::kResidPost, 0).values, (std::vector<float>{5}));
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

std::vector<ModelConfig> configs() {
  ModelConfig post = small_config({.kind = PositionKind::kLearned});
  post.num_layers = 3;
  post.max_positions = 40;
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
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = positions ? -values[i] : event.values[i];
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
        hook != Hook::kNormalizedResidPost)
      continue;
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
    for (int64_t row = 0; row < config_.d_model; ++row)
      std::fill_n(&out[row * width + kHead * D], D, 0.0f);
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
    for (int64_t i = 0; i < std::ssize(values); ++i)
      if (i % T != i / T % T) values[i] = -INFINITY;
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
