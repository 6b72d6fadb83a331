// What an observer sees: the exact relations between hooks, the order of events, and that looking
// changes nothing.
#include "tests/support/encoder_cases.h"

namespace phasor {
namespace {

std::shared_ptr<const Model> observed_model(NormOrder order) {
  ModelConfig config = small_config();
  config.norm_order = order;
  config.final_norm = order == NormOrder::kPreNorm;
  config.num_layers = 3;
  config.position.kind = PositionKind::kLearned;
  return random_model(config, 31, {.token_types = 1});
}

/// A batch of 9 and 4 tokens, seen at every hook. Rows are 15 floats: most start at addresses that
/// are no multiple of a vector.
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

std::vector<float> sum_of(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> sum(a.size());
  for (size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
  return sum;
}

TEST(HooksTest, PathsAreTransformerLens) {
  EXPECT_EQ(hook_path(Hook::kTokenEmbed, -1), "hook_embed");
  EXPECT_EQ(hook_path(Hook::kPosEmbed, -1), "hook_pos_embed");
  EXPECT_EQ(hook_path(Hook::kFullEmbed, 7), "hook_full_embed");
  EXPECT_EQ(hook_path(Hook::kQ, 3), "blocks.3.attn.hook_q");
  EXPECT_EQ(hook_path(Hook::kPattern, 11), "blocks.11.attn.hook_pattern");
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

// Bit by bit; encoder_test.cc compares every hook with the oracle.
TEST(HooksTest, TheStreamIsTheSumOfWhatBranchesAdd) {
  for (const auto order : {NormOrder::kPreNorm, NormOrder::kPostNorm}) {
    const Observed run(order);
    const auto seen = [&](Hook hook, int64_t layer = -1) -> const std::vector<float>& {
      return run.recorder.values(hook, layer);
    };
    const bool pre_norm = order == NormOrder::kPreNorm;
    const Hook output = pre_norm ? Hook::kResidPost : Hook::kNormalizedResidPost;
    expect_same_bits(run.encoding[0].hidden, pre_norm ? seen(Hook::kFinalNorm) : seen(output, 2),
                     "hidden");
    for (int64_t layer = 0; layer < 3; ++layer) {
      expect_same_bits(seen(Hook::kResidPre, layer),
                       layer == 0 ? seen(Hook::kFullEmbed) : seen(output, layer - 1), "resid_pre");
      const std::vector<float>& mid = seen(Hook::kResidMid, layer);
      expect_same_bits(mid, sum_of(seen(Hook::kResidPre, layer), seen(Hook::kAttnOut, layer)),
                       "resid_mid");
      if (!pre_norm) continue;
      expect_same_bits(seen(Hook::kResidPost, layer), sum_of(mid, seen(Hook::kMlpOut, layer)),
                       "resid_post");
    }
  }
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
      for (int64_t i = 0; i < 3; ++i) {
        expect_same_bits(observed[i].hidden, unobserved[i].hidden, what);
      }
      for (const auto& event : recorder.events()) {
        expect_close<float, float>(event.values,
                                   all.values(event.hook, event.layer, event.sequence), 1e-5, what);
      }
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
    for (const Event& event : events()) {
      if (event.sequence == sequence) order.emplace_back(event.layer, event.hook);
    }
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
      for (const Hook hook : {Hook::kPattern, Hook::kResidPost}) {
        expect_same_bits(trace.at(hook, 2, i).values, expected.at(hook, 2, i).values,
                         hook_path(hook, 2) + " of sequence " + std::to_string(i));
      }
    }
  }
}

TEST(HooksTest, ALayerCanBeObservedAlone) {
  struct OneLayer : Recorder {
    bool wants(Hook hook, int64_t layer) const override {
      return layer == 1 && (hook == Hook::kResidPost || hook == Hook::kMlpPre);
    }
  } recorder;
  const Observed run(NormOrder::kPreNorm);
  Encoder(run.model).encode_ids(random_ids(*run.model, 9, 1), {.observer = &recorder});
  ASSERT_EQ(recorder.events().size(), 2u);
  expect_close<float, float>(recorder.values(Hook::kResidPost, 1),
                             run.recorder.values(Hook::kResidPost, 1), 1e-5, "resid_post");
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

TEST(HooksTest, TraceOfARunHasItsHiddenStates) {
  for (const auto order : {NormOrder::kPreNorm, NormOrder::kPostNorm}) {
    const Observed run(order);
    Trace trace = Trace::hidden_states_and_attentions();
    const Encoding encoding =
        Encoder(run.model).encode_ids(random_ids(*run.model, 9, 1), {.observer = &trace});
    EXPECT_EQ(trace.num_layers(), 3);
    expect_same_bits(trace.hidden_state(3).values, encoding[0].hidden, "last hidden state");
    expect_same_bits(trace.hidden_state(0).values, run.recorder.values(Hook::kFullEmbed), "first");
    EXPECT_EQ(trace.at(Hook::kPattern, 2).shape, (std::vector<int64_t>{3, 9, 9}));
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
  for (const char* const none : {"", "hook_nothing", "blocks.2.attn.hook_pattern", "attn"}) {
    EXPECT_THROW(find_hooks(none, 2), InvalidArgument) << none;
  }
}

}  // namespace
}  // namespace phasor
