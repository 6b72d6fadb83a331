// The terms of the first block's scores sum to them, in every kind of model, and each is what its
// name says.
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

}  // namespace
}  // namespace phasor
