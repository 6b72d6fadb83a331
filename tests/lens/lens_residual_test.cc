// The parts of the residual stream sum to it, in every kind of model; parts are subtracted and
// replaced exactly where they are said to be.
#include "lens/causes.h"
#include "lens/order.h"
#include "tests/support/encoder_cases.h"

namespace phasor {
namespace {

double length(std::span<const double> x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

/// Runs `ids` and expects ‖h − Σ parts‖ ≤ 1e-5·‖h‖ for every token of every hidden state, and the
/// shares of the parts to sum to 1.
void expect_parts_sum_to_states(const std::shared_ptr<const Model>& model, const TokenIds& ids,
                                const RunOptions& options = {}, bool heads = false) {
  const Trace trace = recorded(model, ids, residual_trace(heads), options);
  const int64_t d_model = model->config().d_model;
  int64_t visited = 0;
  const auto check = [&](int64_t l, std::span<const ResidualPart> parts) {
    EXPECT_EQ(l, visited++);
    const std::vector<float>& h = trace.hidden_state(l).values;
    for (size_t first = 0; first < h.size(); first += d_model) {
      std::vector<double> rest(h.begin() + first, h.begin() + first + d_model);
      const double whole = length(rest);
      for (const ResidualPart& part : parts) {
        for (int64_t c = 0; c < d_model; ++c) rest[c] -= part.values[first + c];
      }
      EXPECT_LE(length(rest), 1e-5 * whole) << "hidden_states[" << l << "]";
    }
    double shares = 0;
    for (const ResidualPart& part : parts) {
      shares += share_of(part.values, h, d_model).alignment;
    }
    EXPECT_NEAR(shares, 1.0, 1e-5) << "hidden_states[" << l << "]";
  };
  for_each_residual_state(*model, trace, 0, check, options.cut_residuals);
  EXPECT_EQ(visited, model->config().num_layers + 1);
}

TEST(ResidualPartsTest, SumToEveryHiddenStateOfEveryKindOfModel) {
  using Site = ResidualCut::Site;
  int64_t number = 0;
  for (const auto& [name, model] : exact_models()) {
    SCOPED_TRACE(name);
    ++number;
    const TokenIds ids = random_ids(*model, 1 + number % 9, number);
    expect_parts_sum_to_states(model, ids);
    if (number % 3 == 0) expect_parts_sum_to_states(model, ids, {}, true);
    if (number % 6 != 0) continue;
    for (const Site site : {Site::kAttention, Site::kMlp, Site::kBoth}) {
      expect_parts_sum_to_states(model, ids, {.cut_residuals = {{.layer = 0, .site = site}}});
    }
  }
}

TEST(DirectPathTest, InAPreNormModelThePositionVectorTravelsUnchanged) {
  const auto model = random_model(sinusoidal_config(NormOrder::kPreNorm), 3);
  const Trace trace = recorded(model, random_ids(*model, 7, 2), residual_trace());
  const std::vector<float>& positions = trace.at(Hook::kPosEmbed).values;
  for_each_residual_state(*model, trace, 0, [&](int64_t, std::span<const ResidualPart> parts) {
    for (const ResidualPart& part : parts) {
      if (part.source != ResidualSource::kPosition) continue;
      EXPECT_EQ(part.values, std::vector<double>(positions.begin(), positions.end()));
    }
  });
}

TEST(ShareOfTest, KnownParts) {
  const std::vector<float> states = {3, 4, 0, 2};
  const std::vector<double> whole = {3, 4, 0, 2}, across = {-4, 3, 1, 0}, half = {1.5, 2, 0, 1};
  EXPECT_DOUBLE_EQ(share_of(whole, states, 2).norm, 1.0);
  EXPECT_DOUBLE_EQ(share_of(whole, states, 2).alignment, 1.0);
  EXPECT_DOUBLE_EQ(share_of(across, states, 2).norm, (1.0 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(share_of(across, states, 2).alignment, 0.0);
  EXPECT_DOUBLE_EQ(share_of(half, states, 2).alignment, 0.5);
  EXPECT_THROW(share_of(whole, std::span(states).first(2), 2), InvalidArgument);
}

TEST(ResidualPartsTest, ATraceOfSomethingElseIsRefused) {
  const auto model = random_model(sinusoidal_config(NormOrder::kPostNorm), 7);
  const TokenIds ids = {1, 2};
  EXPECT_THROW(direct_path(*model, recorded(model, ids, {Hook::kFullEmbed})), InvalidArgument);
  EXPECT_THROW(direct_path(*model, residual_trace()), InvalidArgument);
  const Trace trace = recorded(model, ids, residual_trace());
  EXPECT_THROW(direct_path(*model, trace, 1), InvalidArgument);
  ModelConfig wider = sinusoidal_config(NormOrder::kPostNorm);
  wider.d_model = 21;
  EXPECT_THROW(direct_path(*random_model(wider, 1), trace), InvalidArgument);
}

/// Direct path, attention, MLPs, all else.
size_t kind_of(ResidualSource source) {
  using enum ResidualSource;
  return source == kPosition ? 0 : source == kAttention ? 1 : source == kMlp ? 2 : 3;
}

std::array<SourceSum, 4> kinds_of(const PositionSources& sources) {
  return {sources.direct, sources.attention, sources.mlp, sources.other};
}

/// By their definition: means of every part over all orders of the movable tokens.
struct ExactSources {
  std::vector<double> shares;  // of the parts
  std::array<SourceSum, 4> kinds;
};

std::vector<ExactSources> sources_over_all_orders(const std::shared_ptr<const Model>& model,
                                                  const TokenIds& ids,
                                                  const std::vector<int64_t>& movable,
                                                  bool heads = false) {
  const int64_t C = model->config().d_model, n = std::ssize(movable);
  std::vector<std::vector<std::vector<double>>> means(model->config().num_layers + 1);
  std::vector<size_t> kinds;  // of the last state's parts, which begin with those of the others
  Encoder encoder(model, {.threads = 1});
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  do {
    TokenIds reordered = ids;
    for (int64_t p = 0; p < n; ++p) reordered[movable[p]] = ids[movable[order[p]]];
    const Trace trace = recorded(encoder, reordered, residual_trace(heads));
    for_each_residual_state(*model, trace, 0, [&](int64_t l, std::span<const ResidualPart> parts) {
      means[l].resize(parts.size(), std::vector<double>(n * C));
      kinds.clear();
      for (const ResidualPart& part : parts) kinds.push_back(kind_of(part.source));
      for (size_t k = 0; k < parts.size(); ++k) {
        for (int64_t i = 0; i < n * C; ++i)
          means[l][k][i] += parts[k].values[movable[i / C] * C + i % C];
      }
    });
  } while (std::next_permutation(order.begin(), order.end()));
  std::vector<ExactSources> states;
  for (std::vector<std::vector<double>>& parts : means) {
    std::vector<double> whole(n * C), of_kind[4];
    for (std::vector<double>& sum : of_kind) sum.resize(n * C);
    for (size_t k = 0; k < parts.size(); ++k) {
      for (int64_t c = 0; c < C; ++c) {
        double mean = 0;
        for (int64_t p = 0; p < n; ++p) mean += parts[k][p * C + c] / static_cast<double>(n);
        for (int64_t p = 0; p < n; ++p) {
          whole[p * C + c] += parts[k][p * C + c] -= mean;
          of_kind[kinds[k]][p * C + c] += parts[k][p * C + c];
        }
      }
    }
    const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
      return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
    };
    const double squares = product(whole, whole);
    ExactSources& state = states.emplace_back();
    for (const std::vector<double>& part : parts)
      state.shares.push_back(product(part, whole) / squares);
    for (size_t kind = 0; kind < 4; ++kind) {
      const std::vector<double>& sum = of_kind[kind];
      state.kinds[kind] = {product(sum, whole) / squares, std::sqrt(product(sum, sum) / squares)};
    }
  }
  return states;
}

bool adds_positions(const Model& model) {
  const PositionKind kind = model.config().position.kind;
  return kind == PositionKind::kSinusoidal || kind == PositionKind::kLearned;
}

/// Whether they are those of all orders, which sum to 1.
void expect_sources(const std::vector<PositionSources>& sources,
                    const std::vector<ExactSources>& want, double tolerance) {
  ASSERT_EQ(sources.size(), want.size());
  for (size_t l = 0; l < want.size(); ++l) {
    SCOPED_TRACE(testing::Message() << "state " << l);
    ASSERT_EQ(sources[l].parts.size(), want[l].shares.size());
    double sum = 0;
    for (size_t k = 0; k < want[l].shares.size(); ++k) {
      EXPECT_NEAR(sources[l].parts[k].share, want[l].shares[k], tolerance) << "part " << k;
      sum += sources[l].parts[k].share;
    }
    EXPECT_NEAR(sum, 1, 1e-9);
    for (size_t kind = 0; kind < 4; ++kind) {
      const SourceSum got = kinds_of(sources[l])[kind];
      EXPECT_NEAR(got.share, want[l].kinds[kind].share, tolerance) << "kind " << kind;
      EXPECT_NEAR(got.length, want[l].kinds[kind].length, tolerance) << "kind " << kind;
    }
  }
}

TEST(PositionSourcesTest, TwoTokensHaveTwoOrdersSoTheSharesAreExact) {
  int tried = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const auto model = drawn_model(seed);
    if (!adds_positions(*model)) continue;
    ++tried;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const TokenIds ids = random_ids(*model, 6, seed);
    const std::vector<int64_t> movable = {1, 4};
    Encoder encoder(model);
    for (const bool heads : {false, true}) {
      expect_sources(position_sources(encoder, ids, movable, {}, 3, seed, {}, heads),
                     sources_over_all_orders(model, ids, movable, heads), 1e-4);
    }
  }
  EXPECT_GT(tried, 5);
}

TEST(PositionSourcesTest, RandomOrdersGiveTheSharesOverAllOrders) {
  const auto model = Model::load(bundled_model("sinusoidal"));
  const TokenIds ids = {2, 48, 138, 86, 348, 3};  // [CLS] The old man gave [SEP]
  const std::vector<int64_t> movable = {1, 2, 3, 4};
  Encoder encoder(model);
  const auto sources = position_sources(encoder, ids, movable, {}, 200, 7);
  expect_sources(sources, sources_over_all_orders(model, ids, movable), 0.02);
  EXPECT_EQ(sources[0].parts[2].source, ResidualSource::kPosition);
  EXPECT_GT(sources[0].parts[2].share, 0.95);
}

TEST(PositionSourcesTest, WithoutPositionsThereIsNothingToShare) {
  Encoder encoder(Model::load(bundled_model("none")));
  for (const auto& state :
       position_sources(encoder, TokenIds{2, 48, 138, 86, 3}, std::vector<int64_t>{1, 2, 3})) {
    for (const SourceShare& part : state.parts) EXPECT_TRUE(std::isnan(part.share));
    for (const SourceSum& kind : kinds_of(state)) {
      EXPECT_TRUE(std::isnan(kind.share));
      EXPECT_TRUE(std::isnan(kind.length));
    }
  }
}

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

/// Squared lengths of the mean of T rows of 64, and of the rows less it, together.
std::pair<double, double> mean_and_rest(const std::vector<float>& rows, size_t first) {
  const auto T = static_cast<double>(rows.size() / 64 - first);
  double common = 0, rest = 0;
  for (size_t c = 0; c < 64; ++c) {
    double mean = 0;
    for (size_t i = first * 64 + c; i < rows.size(); i += 64) mean += rows[i] / T;
    common += mean * mean;
    for (size_t i = first * 64 + c; i < rows.size(); i += 64) rest += std::pow(rows[i] - mean, 2);
  }
  return {common, rest};
}

TEST(CausesTest, RandomRowsHaveTheNormsAndOtherDirections) {
  std::vector<float> rows(40 * 64);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i / 64);  // row 0: zeros
  const std::vector<float> random = random_rows(rows, 64, 7);
  EXPECT_EQ(std::vector(random.begin(), random.begin() + 64), std::vector(64, 0.0F));
  const auto [common, rest] = mean_and_rest(rows, 1);
  EXPECT_NEAR(mean_and_rest(random, 1).first, common, 1e-5 * common);
  EXPECT_NEAR(mean_and_rest(random, 1).second, rest, 1e-5 * rest);
  double product = 0;
  for (size_t i = 0; i < rows.size(); ++i) product += rows[i] * random[i];
  const double squares = 39 * common + rest;
  EXPECT_LT(std::abs(product / squares), 4 / std::sqrt(64));
  EXPECT_EQ(random, random_rows(rows, 64, 7));
  EXPECT_NE(random, random_rows(rows, 64, 8));
  for (size_t i = 64; i < rows.size(); ++i) rows[i] -= 20;
  EXPECT_NEAR(mean_and_rest(random_rows(rows, 64, 7), 1).first, 0, 1e-6);
  const std::vector<float> one(rows.begin() + 64, rows.begin() + 128);
  EXPECT_NEAR(mean_and_rest(random_rows(one, 64, 7), 0).first, mean_and_rest(one, 0).first, 1e-2);
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
