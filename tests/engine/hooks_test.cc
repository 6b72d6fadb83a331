// What an observer sees: the exact relations between hooks, the order of events, and that looking
// changes nothing.
#include "tests/support/encoder_cases.h"
#include "tests/support/test.h"

namespace phasor {
namespace {

std::shared_ptr<const Model> observed_model(NormOrder order, bool embedding_norm) {
  ModelConfig config = small_config();
  config.norm_order = order;
  config.embedding_norm = embedding_norm;
  config.final_norm = order == NormOrder::kPreNorm;
  config.num_layers = 3;
  config.position.kind = PositionKind::kLearned;
  RandomModelExtras extras;
  extras.token_types = 1;
  return random_model(config, 31, extras);
}

/// A batch of 9 and 4 tokens, seen at every hook. Rows are 15 floats: most start at addresses that
/// are no multiple of a vector.
struct Observed {
  explicit Observed(NormOrder order, bool embedding_norm = false)
      : model(observed_model(order, embedding_norm)),
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

std::vector<double> normalized(const NormWeights& weights, double eps,
                               const std::vector<float>& x) {
  const std::vector<float> gamma = weights.weight.to_float(), beta = weights.bias.to_float();
  const size_t width = gamma.size();
  std::vector<double> y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    double mean = 0, square = 0;
    for (size_t c = 0; c < width; ++c) mean += x[row + c] / static_cast<double>(width);
    for (size_t c = 0; c < width; ++c) square += std::pow(x[row + c] - mean, 2);
    const double deviation = std::sqrt(square / static_cast<double>(width) + eps);
    for (size_t c = 0; c < width; ++c)
      y[row + c] = (x[row + c] - mean) / deviation * gamma[c] + beta[c];
  }
  return y;
}

/// Scores are scaled products of queries and keys, patterns their softmax, z patterns times values.
void expect_attention_of(const Recorder& recorder, int64_t layer) {
  constexpr int64_t T = 9, H = 3, D = 5;
  const auto& q = recorder.values(Hook::kQ, layer);  // [T, H, D], as k, v and z
  const auto& k = recorder.values(Hook::kK, layer);
  const auto& v = recorder.values(Hook::kV, layer);
  const auto& scores = recorder.values(Hook::kAttnScores, layer);  // [H, T, T]
  const auto& pattern = recorder.values(Hook::kPattern, layer);
  std::vector<double> products(H * T * T), shares(H * T * T), mixed(T * H * D);
  for (int64_t row = 0; row < H * T; ++row) {
    const int64_t head = row / T, i = row % T;
    double total = 0;
    for (int64_t j = 0; j < T; ++j) {
      for (int64_t d = 0; d < D; ++d) {
        products[row * T + j] +=
            q[(i * H + head) * D + d] * k[(j * H + head) * D + d] / std::sqrt(double{D});
        mixed[(i * H + head) * D + d] += double{pattern[row * T + j]} * v[(j * H + head) * D + d];
      }
      total += shares[row * T + j] = std::exp(double{scores[row * T + j]});
    }
    for (int64_t j = 0; j < T; ++j) shares[row * T + j] /= total;
  }
  expect_close<float, double>(scores, products, 1e-6, "scores");
  expect_close<float, double>(pattern, shares, 1e-5, "pattern");
  expect_close<float, double>(recorder.values(Hook::kZ, layer), mixed, 1e-6, "z");
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

// Besides the oracle, which encoder_test.cc compares with every hook.
TEST(HooksTest, ValuesHaveTheRelationsThatTheirNamesSay) {
  for (const auto& [order, embedding_norm] : {std::pair(NormOrder::kPreNorm, false),
                                              {NormOrder::kPostNorm, false},
                                              {NormOrder::kPostNorm, true}}) {
    const Observed run(order, embedding_norm);
    const Weights& weights = run.model->weights();
    const double eps = run.model->config().norm_eps;
    const auto seen = [&](Hook hook, int64_t layer = -1) -> const std::vector<float>& {
      return run.recorder.values(hook, layer);
    };
    const auto embedded =
        sum_of(sum_of(seen(Hook::kTokenEmbed), seen(Hook::kPosEmbed)), seen(Hook::kTokenTypeEmbed));
    if (embedding_norm) {
      expect_close<float, double>(seen(Hook::kFullEmbed),
                                  normalized(weights.embedding_norm, eps, embedded), 1e-5,
                                  "full_embed");
    } else {
      expect_close<float, float>(seen(Hook::kFullEmbed), embedded, 1e-6, "full_embed");
    }
    const bool pre_norm = order == NormOrder::kPreNorm;
    const Hook output = pre_norm ? Hook::kResidPost : Hook::kNormalizedResidPost;
    expect_same_bits(run.encoding.hidden(0), pre_norm ? seen(Hook::kFinalNorm) : seen(output, 2),
                     "hidden");
    for (int64_t layer = 0; layer < 3; ++layer) {
      expect_same_bits(seen(Hook::kResidPre, layer),
                       layer == 0 ? seen(Hook::kFullEmbed) : seen(output, layer - 1), "resid_pre");
      expect_attention_of(run.recorder, layer);
      const BlockWeights& block = weights.blocks[layer];
      const std::vector<float>& mid = seen(Hook::kResidMid, layer);
      expect_same_bits(mid, sum_of(seen(Hook::kResidPre, layer), seen(Hook::kAttnOut, layer)),
                       "resid_mid");
      if (pre_norm) {
        expect_same_bits(seen(Hook::kResidPost, layer), sum_of(mid, seen(Hook::kMlpOut, layer)),
                         "resid_post");
        continue;
      }
      std::vector<double> expected = normalized(block.attn_norm, eps, mid);
      for (size_t i = 0; i < expected.size(); ++i) expected[i] += seen(Hook::kMlpOut, layer)[i];
      expect_close<float, double>(seen(Hook::kResidPost, layer), expected, 1e-5, "resid_post");
      expect_close<float, double>(seen(Hook::kNormalizedResidPost, layer),
                                  normalized(block.mlp_norm, eps, seen(Hook::kResidPost, layer)),
                                  1e-5, "normalized_resid_post");
    }
  }
}

TEST(HooksTest, ACutResidualLeavesTheBranchAlone) {
  for (const auto order : {NormOrder::kPreNorm, NormOrder::kPostNorm}) {
    Observed run(order);
    Recorder recorder;
    Encoder(run.model).encode_ids(random_ids(*run.model, 9, 1),
                                  {.observer = &recorder, .cut_residuals = {{.layer = 1}}});
    expect_same_bits(recorder.values(Hook::kResidMid, 1), recorder.values(Hook::kAttnOut, 1),
                     "resid_mid");
    expect_same_bits(recorder.values(Hook::kResidPost, 1), recorder.values(Hook::kMlpOut, 1),
                     "resid_post");
    expect_same_bits(recorder.values(Hook::kResidPost, 0), run.recorder.values(Hook::kResidPost, 0),
                     "the block before");
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

TEST(HooksTest, ObservedEqualsUnobserved) {
  const std::pair<NormOrder, Precision> cases[] = {{NormOrder::kPreNorm, Precision::kFloat32},
                                                   {NormOrder::kPostNorm, Precision::kFloat32},
                                                   {NormOrder::kPostNorm, Precision::kInt8}};
  for (const auto& [order, precision] : cases) {
    const Observed run(order);
    Encoder encoder(run.model, {.threads = 2, .precision = precision});
    const std::vector<TokenIds> batch = {random_ids(*run.model, 9, 1), random_ids(*run.model, 4, 2),
                                         random_ids(*run.model, 12, 3)};
    const Encoding unobserved = encoder.encode_ids(batch);
    for (const std::vector<Hook>& hooks : hook_subsets()) {
      Recorder recorder(hooks);
      const Encoding observed = encoder.encode_ids(batch, {.observer = &recorder});
      const std::string what = "observing " + (hooks.empty() ? "all" : hook_path(hooks[0], 0)) +
                               " and " + std::to_string(hooks.size()) + " in all";
      for (int64_t i = 0; i < 3; ++i) {
        expect_same_bits(observed.hidden(i), unobserved.hidden(i), what);
      }
    }
  }
}

TEST(HooksTest, AHookHoldsTheSameValuesWhateverElseIsObserved) {
  const Observed all(NormOrder::kPostNorm);
  for (const std::vector<Hook>& hooks : hook_subsets()) {
    if (hooks.size() != 1) continue;
    Recorder alone({hooks[0]});
    Encoder(all.model).encode_ids(random_ids(*all.model, 9, 1), {.observer = &alone});
    for (const auto& event : alone.events()) {
      expect_close<float, float>(event.values, all.recorder.values(event.hook, event.layer), 1e-5,
                                 hook_path(event.hook, event.layer));
    }
  }
}

/// Says what was asked and what arrived; nothing in it is made for several threads at once.
struct Diary : Observer {
  bool wants(Hook hook, int64_t layer) const override {
    EXPECT_TRUE(seen.empty()) << "wants() after observe()";
    asked.insert({hook, layer});
    return true;
  }
  void observe(const HookEvent& event) override {
    EXPECT_FALSE(listening.exchange(true)) << "two calls at once";
    seen[event.sequence].push_back({event.layer, event.hook});
    std::this_thread::yield();
    listening = false;
  }
  struct Entry {
    int64_t layer;
    Hook hook;
    bool operator==(const Entry&) const = default;
  };
  mutable std::set<std::pair<Hook, int64_t>> asked;
  std::map<int64_t, std::vector<Entry>> seen;  // by sequence
  std::atomic<bool> listening = false;
};

TEST(HooksTest, EventsOfASequenceComeInTheOrderOfTheForwardPassOneAtATime) {
  const Observed run(NormOrder::kPreNorm);
  std::vector<TokenIds> batch;
  for (int i = 0; i < 40; ++i) batch.push_back(random_ids(*run.model, 1 + i % 12, i));
  Diary alone, diary;
  Encoder(run.model, {.threads = 1}).encode_ids(batch[0], {.observer = &alone});
  Encoder(run.model, {.threads = 4}).encode_ids(batch, {.observer = &diary});
  const std::vector<Diary::Entry>& order = alone.seen.at(0);
  for (size_t i = 1; i < order.size(); ++i) {
    const auto [layer, hook] = order[i];
    const auto [layer_before, hook_before] = order[i - 1];
    if (layer >= 0) {
      EXPECT_LT(std::tie(layer_before, hook_before), std::tie(layer, hook))
          << hook_path(hook, layer);
    }
  }
  ASSERT_EQ(diary.seen.size(), batch.size());
  for (const auto& [sequence, seen] : diary.seen) EXPECT_EQ(seen, order) << sequence;
  for (int i = 0; i < kNumHooks; ++i) {
    const auto hook = static_cast<Hook>(i);
    for (int64_t layer = 0; layer < (is_block_hook(hook) ? 3 : 1); ++layer) {
      EXPECT_TRUE(diary.asked.count({hook, is_block_hook(hook) ? layer : -1}))
          << hook_path(hook, layer);
    }
  }
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

struct OneLayer : Recorder {
  bool wants(Hook hook, int64_t layer) const override {
    return layer == 1 && (hook == Hook::kResidPost || hook == Hook::kMlpPre);
  }
};

TEST(HooksTest, ALayerCanBeObservedAlone) {
  const Observed run(NormOrder::kPreNorm);
  OneLayer recorder;
  Encoder(run.model).encode_ids(random_ids(*run.model, 9, 1), {.observer = &recorder});
  ASSERT_EQ(recorder.events().size(), 2u);
  EXPECT_EQ(recorder.events()[0].layer, 1);
  expect_close<float, float>(recorder.values(Hook::kResidPost, 1),
                             run.recorder.values(Hook::kResidPost, 1), 1e-5, "resid_post");
}

TEST(HooksTest, HooksAModelDoesNotHaveAreNotEmitted) {
  ModelConfig config = small_config();
  config.norm_order = NormOrder::kPreNorm;
  const auto model = random_model(config, 32);
  Recorder recorder;
  Encoder(model).encode_ids(random_ids(*model, 3, 1), {.observer = &recorder});
  for (const auto& event : recorder.events()) {
    EXPECT_NE(event.hook, Hook::kPosEmbed);
    EXPECT_NE(event.hook, Hook::kTokenTypeEmbed);
    EXPECT_NE(event.hook, Hook::kNormalizedResidPost);
    EXPECT_NE(event.hook, Hook::kFinalNorm);
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
    expect_same_bits(hidden_of(encoder.encode_ids(ids)), run.encoding.hidden(0), "after");
  }
}

TEST(HooksTest, TraceOfARunHasItsHiddenStates) {
  for (const auto order : {NormOrder::kPreNorm, NormOrder::kPostNorm}) {
    const Observed run(order);
    Trace trace = Trace::hidden_states_and_attentions();
    const Encoding encoding =
        Encoder(run.model).encode_ids(random_ids(*run.model, 9, 1), {.observer = &trace});
    EXPECT_EQ(trace.num_layers(), 3);
    expect_same_bits(trace.hidden_state(3).values, encoding.hidden(0), "last hidden state");
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
  EXPECT_EQ(all.size(), 4 + 2 * 16 + 1u);
  for (const char* const none : {"", "hook_nothing", "blocks.2.attn.hook_pattern", "attn"}) {
    EXPECT_THROW(find_hooks(none, 2), InvalidArgument) << none;
  }
}

}  // namespace
}  // namespace phasor
