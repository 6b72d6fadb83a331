// The parts of the residual stream sum to it, in every kind of model; the position's part is what
// the direct path says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "phasor/errors.h"
#include "phasor/lens/residual.h"
#include "tests/support/encoder_cases.h"
#include "tests/support/expect_close.h"
#include "tests/support/test_files.h"

namespace phasor {
namespace {

double length(std::span<const double> x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

/// Runs `ids` and expects ‖h − Σ parts‖ ≤ 1e-5·‖h‖ for every token of every hidden state, and the
/// shares of the parts to sum to 1.
void expect_parts_sum_to_states(const std::shared_ptr<const Model>& model, const TokenIds& ids,
                                RunOptions options = {}, bool heads = false) {
  Trace trace = residual_trace(heads);
  options.observer = &trace;
  Encoder(model).encode_ids(ids, options);
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

TEST(ResidualPartsTest, SumToEveryHiddenStateOfRandomModels) {
  int pre = 0, post = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const auto model = drawn_model(seed);
    ++(model->config().norm_order == NormOrder::kPreNorm ? pre : post);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    expect_parts_sum_to_states(model, random_ids(*model, 1 + static_cast<int64_t>(seed) % 9, seed));
  }
  EXPECT_GT(pre, 9);
  EXPECT_GT(post, 9);
}

TEST(ResidualPartsTest, SumToEveryHiddenStateOfModelsWithPositionsWithinAttention) {
  for (uint64_t seed = kFirstScorePositionsSeed; seed < kFirstScorePositionsSeed + 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto model = drawn_model(seed);
    expect_parts_sum_to_states(model, random_ids(*model, 1 + static_cast<int64_t>(seed) % 9, seed));
  }
}

TEST(ResidualPartsTest, ByHeadSumToEveryHiddenState) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto model = drawn_model(seed);
    expect_parts_sum_to_states(model, random_ids(*model, 6, seed), {}, true);
  }
}

TEST(ResidualPartsTest, SumToEveryHiddenStateOfTheTwins) {
  for (const char* twin : {"sinusoidal", "learned", "none", "rotary", "relative"}) {
    SCOPED_TRACE(twin);
    const auto model = Model::load(twin);
    expect_parts_sum_to_states(model, random_ids(*model, 30, 5));
  }
}

TEST(ResidualPartsTest, SumToHiddenStatesWhoseResidualsWereCut) {
  using Site = ResidualCut::Site;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const auto model = drawn_model(seed);
    for (const Site site : {Site::kAttention, Site::kMlp, Site::kBoth}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", site " << static_cast<int>(site));
      expect_parts_sum_to_states(model, random_ids(*model, 6, seed),
                                 {.cut_residuals = {{.layer = 0, .site = site}}});
    }
  }
}

std::vector<DirectPath> path(const std::shared_ptr<const Model>& model, RunOptions options = {}) {
  Trace trace = residual_trace();
  options.observer = &trace;
  Encoder(model).encode_ids(random_ids(*model, 7, 2), options);
  return direct_path(*model, trace, 0, options.cut_residuals);
}

TEST(DirectPathTest, InAPreNormModelThePositionVectorTravelsUnchanged) {
  const auto model = random_model(sinusoidal_config(NormOrder::kPreNorm), 3);
  Trace trace = residual_trace();
  Encoder(model).encode_ids(random_ids(*model, 7, 2), {.observer = &trace});
  const std::vector<float>& positions = trace.at(Hook::kPosEmbed).values;
  for_each_residual_state(*model, trace, 0, [&](int64_t, std::span<const ResidualPart> parts) {
    for (const ResidualPart& part : parts) {
      if (part.source != ResidualSource::kPosition) continue;
      EXPECT_EQ(part.values, std::vector<double>(positions.begin(), positions.end()));
    }
  });
}

TEST(DirectPathTest, IsZeroWithoutPositionsAndAboveZeroWithThem) {
  for (const NormOrder order : {NormOrder::kPreNorm, NormOrder::kPostNorm}) {
    const auto model = random_model(sinusoidal_config(order), 4);
    for (const DirectPath& path : path(model)) EXPECT_GT(path.position.norm, 0.01);
    const std::vector<DirectPath> without = path(model, {.positions = Positions::none()});
    ASSERT_EQ(without.size(), 3u);
    for (const DirectPath& path : without) {
      EXPECT_EQ(path.position.norm, 0.0);
      EXPECT_EQ(path.position.alignment, 0.0);
      EXPECT_GT(path.token.norm, 0.0);
    }
  }
}

TEST(DirectPathTest, ACutResidualEndsIt) {
  for (const NormOrder order : {NormOrder::kPreNorm, NormOrder::kPostNorm}) {
    const auto model = random_model(sinusoidal_config(order), 5);
    const std::vector<DirectPath> paths =
        path(model, {.cut_residuals = {{.layer = 1, .site = ResidualCut::Site::kMlp}}});
    EXPECT_GT(paths[0].position.norm, 0.0);
    EXPECT_GT(paths[1].position.norm, 0.0);
    EXPECT_EQ(paths[2].position.norm, 0.0);
  }
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
  Trace states{Hook::kFullEmbed};
  Encoder(model).encode_ids(TokenIds{1, 2}, {.observer = &states});
  EXPECT_THROW(direct_path(*model, states), InvalidArgument);
  EXPECT_THROW(direct_path(*model, residual_trace()), InvalidArgument);
  Trace trace = residual_trace();
  Encoder(model).encode_ids(TokenIds{1, 2}, {.observer = &trace});
  EXPECT_THROW(direct_path(*model, trace, 1), InvalidArgument);
  ModelConfig wider = sinusoidal_config(NormOrder::kPostNorm);
  wider.d_model = 21;
  EXPECT_THROW(direct_path(*random_model(wider, 1), trace), InvalidArgument);
}

/// The shares by their definition: means of every part over all orders of the movable tokens.
std::vector<std::vector<double>> sources_over_all_orders(const std::shared_ptr<const Model>& model,
                                                         const TokenIds& ids,
                                                         const std::vector<int64_t>& movable,
                                                         bool heads = false) {
  const int64_t C = model->config().d_model, n = std::ssize(movable);
  std::vector<std::vector<std::vector<double>>> means(model->config().num_layers + 1);
  Encoder encoder(model, {.threads = 1});
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  do {
    TokenIds reordered = ids;
    for (int64_t p = 0; p < n; ++p) reordered[movable[p]] = ids[movable[order[p]]];
    Trace trace = residual_trace(heads);
    encoder.encode_ids(reordered, {.observer = &trace});
    for_each_residual_state(*model, trace, 0, [&](int64_t l, std::span<const ResidualPart> parts) {
      means[l].resize(parts.size(), std::vector<double>(n * C));
      for (size_t k = 0; k < parts.size(); ++k) {
        for (int64_t i = 0; i < n * C; ++i)
          means[l][k][i] += parts[k].values[movable[i / C] * C + i % C];
      }
    });
  } while (std::next_permutation(order.begin(), order.end()));
  std::vector<std::vector<double>> shares;
  for (std::vector<std::vector<double>>& parts : means) {
    std::vector<double> whole(n * C);
    for (std::vector<double>& part : parts) {
      for (int64_t c = 0; c < C; ++c) {
        double mean = 0;
        for (int64_t p = 0; p < n; ++p) mean += part[p * C + c] / static_cast<double>(n);
        for (int64_t p = 0; p < n; ++p) whole[p * C + c] += part[p * C + c] -= mean;
      }
    }
    const double squares = std::inner_product(whole.begin(), whole.end(), whole.begin(), 0.0);
    std::vector<double>& of_state = shares.emplace_back();
    for (const std::vector<double>& part : parts) {
      of_state.push_back(std::inner_product(part.begin(), part.end(), whole.begin(), 0.0) /
                         squares);
    }
  }
  return shares;
}

bool adds_positions(const Model& model) {
  const PositionKind kind = model.config().position.kind;
  return kind == PositionKind::kSinusoidal || kind == PositionKind::kLearned;
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
      const auto sources = position_sources(encoder, ids, movable, {}, 3, seed, {}, heads);
      const auto want = sources_over_all_orders(model, ids, movable, heads);
      ASSERT_EQ(sources.size(), want.size());
      for (size_t l = 0; l < want.size(); ++l) {
        ASSERT_EQ(sources[l].size(), want[l].size());
        for (size_t k = 0; k < want[l].size(); ++k)
          EXPECT_NEAR(sources[l][k].share, want[l][k], 1e-4) << l << ", part " << k;
      }
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
  const auto want = sources_over_all_orders(model, ids, movable);
  for (size_t l = 0; l < want.size(); ++l) {
    double sum = 0;
    for (size_t k = 0; k < want[l].size(); ++k) {
      EXPECT_NEAR(sources[l][k].share, want[l][k], 0.02) << l << ", part " << k;
      sum += sources[l][k].share;
    }
    EXPECT_NEAR(sum, 1, 1e-9);
  }
  EXPECT_EQ(sources[0][2].source, ResidualSource::kPosition);
  EXPECT_GT(sources[0][2].share, 0.95);
}

TEST(PositionSourcesTest, WithoutPositionsThereIsNothingToShare) {
  Encoder encoder(Model::load(bundled_model("none")));
  for (const auto& state :
       position_sources(encoder, TokenIds{2, 48, 138, 86, 3}, std::vector<int64_t>{1, 2, 3})) {
    for (const SourceShare& part : state) EXPECT_TRUE(std::isnan(part.share));
  }
}

TEST(PositionSourcesTest, NothingDependsOnThreads) {
  const auto model = Model::load(bundled_model("learned"));
  const TokenIds ids = {2, 48, 138, 86, 348, 3};
  Encoder one(model, {.threads = 1}), two(model, {.threads = 2});
  const std::vector<int64_t> movable = {1, 2, 3, 4};
  const auto a = position_sources(one, ids, movable), b = position_sources(two, ids, movable);
  for (size_t l = 0; l < a.size(); ++l) {
    for (size_t k = 0; k < a[l].size(); ++k) EXPECT_EQ(a[l][k].share, b[l][k].share);
  }
}

}  // namespace
}  // namespace phasor
