// The terms of scores sum to them, in every kind of model, and each is what its name says: by pairs
// of tokens, and by offset against sums over all pairs.
#include "lens/relative.h"
#include "tests/support/encoder_cases.h"
#include "tests/support/reference_encoder.h"

namespace phasor {
namespace {

std::vector<double> sum_of(const ScoreTerms& terms) {
  std::vector<double> sum(terms.rest.size());
  for (size_t i = 0; i < sum.size(); ++i) {
    sum[i] = terms.token_token[i] + terms.token_position[i] + terms.position_token[i] +
             terms.position_position[i] + terms.relative_bias[i] + terms.rest[i];
  }
  return sum;
}

double sum_of(const ScoreShares& shares) {
  return shares.token_token + shares.token_position + shares.position_token +
         shares.position_position + shares.relative_bias + shares.rest;
}

struct RecordedScores {
  ScoreTrace trace;
  ScoreTerms terms;
};

RecordedScores record_scores(const Model& model, Encoder& encoder, const TokenIds& ids,
                             RunOptions options = {}) {
  RecordedScores recorded;
  options.observer = &recorded.trace;
  encoder.encode_ids(ids, options);
  recorded.terms = first_layer_scores(model, recorded.trace, options.positions);
  return recorded;
}

void expect_terms_sum_to_scores(const std::shared_ptr<const Model>& model, const TokenIds& ids,
                                const RunOptions& options = {}) {
  Encoder encoder(model);
  const RecordedScores recorded = record_scores(*model, encoder, ids, options);
  const std::vector<double> sum = sum_of(recorded.terms);
  expect_close<double, float>(sum, recorded.trace.at(Hook::kAttnScores, 0).values, 1e-4, "scores");
  if (ids.size() < 2) return;
  EXPECT_NEAR(sum_of(score_shares(recorded.terms)), 1.0, 1e-12);
  for (int64_t h = 0; h < recorded.terms.num_heads; ++h) {
    EXPECT_NEAR(sum_of(score_shares(recorded.terms, h)), 1.0, 1e-12) << "head " << h;
  }
}

TEST(ScoreTermsTest, SumToTheScoresOfEveryKindOfModel) {
  std::set<std::pair<PositionKind, ScoreBias>> kinds;
  int64_t number = 0;
  for (const auto& [name, model] : exact_models()) {
    SCOPED_TRACE(name);
    kinds.emplace(model->config().position.kind, model->config().position.bias);
    ++number;
    const TokenIds ids = random_ids(*model, 1 + number % 9, number);
    if (model->config().qk_norm || model->config().score_cap > 0) {
      EXPECT_THROW(first_layer_scores(*model, ScoreTrace(), Positions()), InvalidArgument);
      continue;
    }
    for (const Positions& positions :
         {Positions(), Positions().reversed().scaled(0.5f), Positions::alibi()}) {
      expect_terms_sum_to_scores(model, ids, {.positions = positions});
    }
  }
  EXPECT_EQ(kinds.size(), 9u);
  const auto model = random_model(sinusoidal_config(NormOrder::kPostNorm), 9);
  expect_terms_sum_to_scores(model, random_ids(*model, 512, 2));
}

/// No biases and no norm before the scores: only the four terms.
ModelConfig plain_config() {
  ModelConfig config = small_config();
  config.position.kind = PositionKind::kSinusoidal;
  config.linear_bias = false;
  return config;
}

bool all_zero(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return value == 0; });
}

TEST(ScoreTermsTest, AreTheProductsOfTokensAndPositions) {
  constexpr int64_t T = 4, H = 3, D = 5;
  const auto model = random_model(plain_config(), 5);
  const BlockWeights& block = model->weights().blocks[0];
  Encoder encoder(model);
  for (const float scale : {1.0f, 0.5f, 0.0f}) {
    const RunOptions options = {.positions = Positions().shifted(2).scaled(scale)};
    const RecordedScores recorded = record_scores(*model, encoder, {1, 2, 3, 4}, options);
    /// ⟨q, k⟩/√D of the vectors at two hooks: [H, T, T].
    const auto products = [&](Hook of_query, Hook of_key) {
      const std::vector<float>&x = recorded.trace.at(of_query).values,
            &y = recorded.trace.at(of_key).values;
      const std::vector<double> q =
          reference::linear(block.q, std::vector<double>(x.begin(), x.end()));
      const std::vector<double> k =
          reference::linear(block.k, std::vector<double>(y.begin(), y.end()));
      std::vector<double> all(H * T * T);
      for (int64_t pair = 0; pair < H * T * T; ++pair) {
        const int64_t head = pair / (T * T), i = pair / T % T, j = pair % T;
        for (int64_t d = 0; d < D; ++d) {
          all[pair] += q[(i * H + head) * D + d] * k[(j * H + head) * D + d] / std::sqrt(double{D});
        }
      }
      return all;
    };
    const Hook token = Hook::kTokenEmbed, position = Hook::kPosEmbed;
    const ScoreTerms& terms = recorded.terms;
    expect_close<double, double>(terms.token_token, products(token, token), 1e-6, "tokens");
    expect_close<double, double>(terms.token_position, products(token, position), 1e-6,
                                 "to position");
    expect_close<double, double>(terms.position_token, products(position, token), 1e-6, "to token");
    expect_close<double, double>(terms.position_position, products(position, position), 1e-6,
                                 "positions");
    EXPECT_TRUE(all_zero(terms.rest));
    EXPECT_TRUE(all_zero(terms.relative_bias));
  }
}

TEST(ScoreSharesTest, EqualTokensVaryByTheirPositionsAlone) {
  const auto model = random_model(plain_config(), 6);
  Encoder encoder(model);
  const RunOptions without = {.positions = Positions::none()};
  const ScoreTerms terms = record_scores(*model, encoder, {1, 2, 3, 4}, without).terms;
  EXPECT_NEAR(score_shares(terms).token_token, 1.0, 1e-12);
  EXPECT_EQ(sum_of(score_shares(record_scores(*model, encoder, {7, 7, 7}, without).terms)), 0.0);
  EXPECT_EQ(sum_of(score_shares(record_scores(*model, encoder, {7}).terms)), 0.0);
  const ScoreShares equal_tokens = score_shares(record_scores(*model, encoder, {7, 7, 7}).terms);
  EXPECT_NEAR(equal_tokens.token_token, 0.0, 1e-12);
  EXPECT_NEAR(equal_tokens.position_token, 0.0, 1e-12);
  EXPECT_NEAR(equal_tokens.token_position + equal_tokens.position_position, 1.0, 1e-12);
}

TEST(ScoreTermsTest, TheRelativeBiasIsTheTablesEntryForTheDistance) {
  ModelConfig config = small_config();
  config.position = {.bias = ScoreBias::kBuckets, .num_buckets = 32, .max_distance = 50};
  const auto model = random_model(config, 7);
  Encoder encoder(model);
  const RunOptions doubled = {.positions = Positions().scaled(2)};
  const ScoreTerms terms = record_scores(*model, encoder, random_ids(*model, 6, 1), doubled).terms;
  const std::vector<float> table = model->weights().relative_bias.to_float();  // [32, H]
  for (int64_t h = 0; h < 3; ++h) {
    for (int64_t i = 0; i < 6; ++i) {
      for (int64_t j = 0; j < 6; ++j) {  // near: a bucket for each distance
        const int64_t bucket = j > i ? 16 + j - i : i - j;
        EXPECT_NEAR(terms.relative_bias[(h * 6 + i) * 6 + j], 2 * table[bucket * 3 + h], 1e-4);
      }
    }
  }
  EXPECT_GT(score_shares(terms).relative_bias, 0.1);
  EXPECT_TRUE(all_zero(terms.position_position));
}

TEST(ScoreSharesTest, AreThoseOfTermsMadeByHand) {
  // One head of two tokens. Scores: rows (3, 1) and (0, 0); what is constant in a row counts not.
  ScoreTerms terms{
      1, 2, {1, 0, 5, 5}, {1, 1, 0, 0}, {0, 0, 0, 0}, {1, 0, 0, 0}, {0, 0, -5, -5}, {0, 0, 0, 0}};
  const ScoreShares shares = score_shares(terms);
  EXPECT_DOUBLE_EQ(shares.token_token, 0.5);
  EXPECT_DOUBLE_EQ(shares.token_position, 0.0);
  EXPECT_DOUBLE_EQ(shares.position_position, 0.5);
  EXPECT_DOUBLE_EQ(shares.relative_bias, 0.0);
  EXPECT_THROW(score_shares(terms, 1), InvalidArgument);
  EXPECT_THROW(score_shares(terms, -1), InvalidArgument);
}

TEST(ScoreTermsTest, ATraceOfSomethingElseIsRefused) {
  const auto model = random_model(plain_config(), 7);
  EXPECT_THROW(first_layer_scores(*model, ScoreTrace()), InvalidArgument);
  ScoreTrace trace;
  Encoder(model).encode_ids(TokenIds{1, 2}, {.observer = &trace});
  EXPECT_NO_THROW(first_layer_scores(*model, trace));
  EXPECT_THROW(first_layer_scores(*model, trace, {}, 1), InvalidArgument);
  EXPECT_FALSE(trace.has(Hook::kAttnScores, 1));
  ModelConfig other = plain_config();
  other.num_heads = 5;
  other.d_head = 5;
  EXPECT_THROW(first_layer_scores(*random_model(other, 1), trace), InvalidArgument);
  other = plain_config();
  other.d_model = 21;
  EXPECT_THROW(first_layer_scores(*random_model(other, 1), trace), InvalidArgument);
}

constexpr int64_t kFarthest = 7;
constexpr uint64_t kFirst = kFirstScorePositionsSeed, kLast = kFirst + 99;

using Row = std::vector<double>;

double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// A layer of a run, whose terms it computes for any pair of tokens at any offset.
class Oracle {
 public:
  Oracle(const Model& model, const Trace& trace, const Positions& positions, int64_t layer)
      : model_(model),
        config_(model.config()),
        trace_(trace),
        positions_(positions),
        layer_(layer) {
    if (!config_.position.disentangled || positions.source() != Positions::Source::kModel) return;
    const BlockWeights& block = model.weights().blocks[config_.block_of(layer)];
    const Row table = reference::relative_table(model);
    if (config_.position.disentangled->content_to_position) {
      keys_ = reference::linear(block.k, table);
    }
    if (config_.position.disentangled->position_to_content) {
      queries_ = reference::linear(block.q, table);
    }
  }

  int64_t num_tokens() const { return trace_.at(Hook::kQ, layer_).shape[0]; }
  Row q(int64_t token, int64_t head) const { return of(Hook::kQ, token, head); }
  Row k(int64_t token, int64_t head) const { return of(Hook::kK, token, head); }

  double product(int64_t i, int64_t j, int64_t head) const {
    return config_.score_scale() * dot(q(i, head), k(j, head));
  }
  double bias(int64_t head, int64_t d) const {
    return reference::score_bias(model_, positions_, head, static_cast<double>(d));
  }
  double rotation(int64_t i, int64_t j, int64_t head, int64_t d) const {
    const auto rotary = reference::rotation(config_, positions_, layer_);
    if (!rotary) return 0;
    Row key = k(j, head);
    reference::rotate(*rotary, num_tokens(),
                      reference::attention_scale(positions_) * static_cast<double>(d), key);
    return config_.score_scale() * dot(q(i, head), key) - product(i, j, head);
  }
  double content_to_position(int64_t i, int64_t head, int64_t d) const {
    return keys_.empty() ? 0 : factor() * dot(q(i, head), relative(keys_, head, d));
  }
  double position_to_content(int64_t j, int64_t head, int64_t d) const {
    return queries_.empty() ? 0 : factor() * dot(k(j, head), relative(queries_, head, d));
  }
  bool in_window(int64_t d) const {
    return reference::sees(config_, positions_, layer_, static_cast<double>(d));
  }
  bool sees(int64_t d) const { return in_window(d) && (d <= 0 || !config_.causal); }

 private:
  double factor() const { return config_.score_scale() * reference::attention_scale(positions_); }
  Row of(Hook hook, int64_t token, int64_t head) const {
    const int64_t D = config_.head_dim();
    const std::vector<float>& values = trace_.at(hook, layer_).values;
    const int64_t heads = std::ssize(values) / num_tokens() / D;
    const float* const row = values.data() + (token * heads + head * heads / config_.num_heads) * D;
    return {row, row + D};
  }
  Row relative(const Row& rows, int64_t head, int64_t d) const {
    const int64_t D = config_.head_dim();
    const int64_t r = reference::disentangled_row(*config_.position.disentangled, -d);
    const double* const row = rows.data() + r * config_.attention_width() + head * D;
    return {row, row + D};
  }

  const Model& model_;
  const ModelConfig& config_;
  const Trace& trace_;
  const Positions& positions_;
  int64_t layer_;
  Row keys_, queries_;  // [2S, H·D]
};

struct Recorded {
  Trace trace{Hook::kQ, Hook::kK, Hook::kAttnScores};
  Positions positions;
  std::vector<float> places = {};  // each token's position
};

Recorded record(const std::shared_ptr<const Model>& model, int64_t num_tokens, uint64_t seed,
                const Positions& positions = {}) {
  Recorded run{.positions = positions};
  const Encoding encoding = Encoder(model).encode_ids(
      random_ids(*model, num_tokens, seed), {.observer = &run.trace, .positions = positions});
  run.places = {encoding.positions.begin(), encoding.positions.end()};
  return run;
}

/// At the offsets that the tokens of a run have.
void expect_terms_sum_to_scores(const Oracle& oracle, const Model& model, const Recorded& run,
                                int64_t layer) {
  const int64_t T = oracle.num_tokens();
  Row sums;
  for (int64_t head = 0; head < model.config().num_heads; ++head) {
    for (int64_t i = 0; i < T; ++i) {
      for (int64_t j = 0; j < T; ++j) {
        const auto d = static_cast<int64_t>(run.places[j] - run.places[i]);
        const double sum = oracle.product(i, j, head) + oracle.bias(head, d) +
                           oracle.rotation(i, j, head, d) + oracle.content_to_position(i, head, d) +
                           oracle.position_to_content(j, head, d);
        const bool seen = oracle.in_window(d) && (j <= i || !model.config().causal);
        sums.push_back(seen ? sum : -INFINITY);
      }
    }
  }
  expect_close<double, float>(sums, run.trace.at(Hook::kAttnScores, layer).values, 1e-4, "scores");
}

/// `curve` at offset d is the mean and the deviation of `values`; empty where all are 0.
void expect_mean_of(const OffsetCurve& curve, int64_t d, bool seen, const Row& values,
                    const char* what) {
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(values.size()));
  if (curve.mean.empty()) {
    EXPECT_EQ(mean, 0) << what << " at " << d;
    EXPECT_EQ(deviation, 0) << what << " at " << d;
    return;
  }
  ASSERT_EQ(curve.mean.size(), 2u * kFarthest + 1);
  ASSERT_EQ(curve.deviation.size(), 2u * kFarthest + 1);
  if (!seen) {
    EXPECT_TRUE(std::isnan(curve.mean[d + kFarthest])) << what << " at " << d;
    EXPECT_TRUE(std::isnan(curve.deviation[d + kFarthest])) << what << " at " << d;
    return;
  }
  EXPECT_NEAR(curve.mean[d + kFarthest], mean, 1e-5 * (1 + std::abs(mean))) << what << " at " << d;
  EXPECT_NEAR(curve.deviation[d + kFarthest], deviation, 1e-5 * (1 + deviation))
      << what << " at " << d;
}

void expect_effects_are_means(const Oracle& oracle, std::span<const OffsetEffect> effects) {
  const int64_t T = oracle.num_tokens();
  for (int64_t head = 0; head < std::ssize(effects); ++head) {
    const OffsetEffect& effect = effects[head];
    for (int64_t d = -kFarthest; d <= kFarthest; ++d) {
      Row rotation, to_position, to_content;
      for (int64_t i = 0; i < T; ++i) {
        for (int64_t j = 0; j < T; ++j) rotation.push_back(oracle.rotation(i, j, head, d));
        to_position.push_back(oracle.content_to_position(i, head, d));
        to_content.push_back(oracle.position_to_content(i, head, d));
      }
      const bool seen = oracle.sees(d);
      expect_mean_of(effect.bias, d, seen, {oracle.bias(head, d)}, "bias");
      expect_mean_of(effect.rotation, d, seen, rotation, "rotation");
      expect_mean_of(effect.content_to_position, d, seen, to_position, "content to position");
      expect_mean_of(effect.position_to_content, d, seen, to_content, "position to content");
    }
  }
}

void expect_right(const std::shared_ptr<const Model>& model, const Recorded& run) {
  for (int64_t layer = 0; layer < model->config().num_layers; ++layer) {
    const Oracle oracle(*model, run.trace, run.positions, layer);
    expect_terms_sum_to_scores(oracle, *model, run, layer);
    const auto effects = offset_effects(*model, run.trace, layer, kFarthest, run.positions);
    ASSERT_EQ(std::ssize(effects), model->config().num_heads);
    expect_effects_are_means(oracle, effects);
  }
}

TEST(OffsetEffectTest, IsTheMeanOverAllPairsOfTermsThatSumToTheScores) {
  int rotary = 0, disentangled = 0, bias = 0, window = 0, causal = 0, grouped = 0;
  for (uint64_t seed = kFirst; seed <= kLast; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto model = drawn_model(seed);
    const ModelConfig& config = model->config();
    if (config.qk_norm || config.score_cap > 0) {
      EXPECT_THROW(offset_effects(*model, Trace{Hook::kQ}, 0, 3, Positions()), InvalidArgument);
      continue;
    }
    rotary += config.position.rotary ? 1 : 0;
    disentangled += config.position.disentangled ? 1 : 0;
    bias += config.position.bias != ScoreBias::kNone ? 1 : 0;
    window += config.window(0) > 0 ? 1 : 0;
    causal += config.causal ? 1 : 0;
    grouped += config.num_kv_heads > 0 ? 1 : 0;
    const int64_t T = 1 + static_cast<int64_t>(seed) % 9;
    expect_right(model, record(model, T, seed));
    expect_right(model, record(model, T, seed, Positions().scaled(0.5f)));
  }
  for (const int count : {rotary, disentangled, bias, window}) EXPECT_GT(count, 9);
  for (const int count : {causal, grouped}) EXPECT_GT(count, 2);
}

TEST(OffsetEffectTest, IsThatOfTheRunsOwnPositions) {
  ModelConfig config = small_config();
  config.d_model = 24;
  config.position = {.bias = ScoreBias::kBuckets, .rotary = RotaryConfig{.interleaved = true}};
  const auto model = random_model(config, 3);
  for (const Positions& positions : {Positions::rotary(50), Positions::alibi(), Positions::none(),
                                     Positions::sinusoidal(SinusoidalLayout::kPaper),
                                     Positions().scaled(0), Positions().averaged()}) {
    expect_right(model, record(model, 6, 2, positions));
  }
  const Recorded none = record(model, 6, 2, Positions::none());
  EXPECT_TRUE(offset_effects(*model, none.trace, 0, 3, none.positions)[0].rotation.mean.empty());
}

TEST(OffsetEffectTest, WhatIsNotThereIsRefused) {
  const auto model = random_model(small_config(), 4);
  const Recorded run = record(model, 3, 1);
  EXPECT_THROW(offset_effects(*model, run.trace, 2, 5), InvalidArgument);
  EXPECT_THROW(offset_effects(*model, run.trace, -1, 5), InvalidArgument);
  EXPECT_THROW(offset_effects(*model, run.trace, 0, -1), InvalidArgument);
  EXPECT_THROW(offset_effects(*model, run.trace, 0, 5, {}, 1), InvalidArgument);
  EXPECT_THROW(offset_effects(*model, Trace{Hook::kQ}, 0, 5), InvalidArgument);
  ModelConfig wide = small_config();
  wide.d_model = 21;
  EXPECT_THROW(offset_effects(*random_model(wide, 1), run.trace, 0, 5), InvalidArgument);
}

TEST(ByOffsetTest, KnownPairs) {
  const std::vector<double> pairs = {1, 2, 8, 4, 1, 4, 0, 6, 1};  // [3, 3]
  const std::vector<float> positions = {3, 4, 5};
  const OffsetCurve curve = by_offset(pairs, positions, 3);
  const Row mean = {0, 5, 1, 3, 8}, deviation = {0, 1, 0, 1, 0};
  for (int64_t d = -2; d <= 2; ++d) {
    EXPECT_DOUBLE_EQ(curve.mean[d + 3], mean[d + 2]) << d;
    EXPECT_DOUBLE_EQ(curve.deviation[d + 3], deviation[d + 2]) << d;
  }
  EXPECT_TRUE(std::isnan(curve.mean[0]) && std::isnan(curve.mean[6]));
  const std::vector<float> reversed = {5, 4, 3};
  EXPECT_EQ(by_offset(pairs, reversed, 1).mean, (Row{3, 1, 5}));
  EXPECT_THROW(by_offset(pairs, std::span(positions).first(2), 1), InvalidArgument);
  EXPECT_THROW(by_offset(pairs, positions, -1), InvalidArgument);
}

}  // namespace
}  // namespace phasor
