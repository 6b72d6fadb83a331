// The products of the parts' queries and keys, head by head.

#include "phasor/lens/scores.h"

#include <array>
#include <cmath>
#include <numeric>

#include "engine/positions/position_source.h"
#include "lens/matrix.h"
#include "lens/residual_stream.h"
#include "lens/rows.h"

namespace phasor {
using namespace internal;

namespace {

// The parts of block 0's input, [T, C] each.
struct Parts {
  Matrix token, position, other;
};

Parts parts_of(const ResidualStream& stream, int64_t d_model) {
  const int64_t T = stream.num_tokens();
  Parts parts{Matrix::Zero(T, d_model), Matrix::Zero(T, d_model), Matrix::Zero(T, d_model)};
  for (const ResidualPart& part : stream.parts()) {
    Matrix& sum = part.source == ResidualSource::kToken      ? parts.token
                  : part.source == ResidualSource::kPosition ? parts.position
                                                             : parts.other;
    sum += Eigen::Map<const Matrix>(part.values.data(), T, d_model);
  }
  return parts;
}

// The queries (or keys) of all heads from each part, [T, H·D]; the bias belongs to `other`.
Parts project(const Parts& parts, const LinearWeights& weights) {
  const std::vector<float> values = weights.weight.to_float();
  const auto width = std::ssize(values) / parts.token.cols();
  const std::vector<double> weight_values(values.begin(), values.end());
  const Eigen::Map<const Matrix> weight(weight_values.data(), width, parts.token.cols());
  Parts projected{times_transposed(parts.token, weight), times_transposed(parts.position, weight),
                  times_transposed(parts.other, weight)};
  if (weights.bias.present()) {
    const std::vector<float> bias = weights.bias.to_float();
    projected.other.rowwise() +=
        Eigen::Map<const Eigen::RowVectorXf>(bias.data(), width).cast<double>();
  }
  return projected;
}

// What the run's positions made of scale·Q·Kᵀ in one head: [T, T].
Matrix bias_of(const ResidualStream& stream, const ModelConfig& config, int64_t head) {
  const int64_t T = stream.num_tokens(), D = config.head_dim();
  const int64_t q_width = config.attention_width(), k_width = config.kv_width();
  const std::span<const float> scores = stream.values(Hook::kAttnScores, 0);
  const float* const q = stream.values(Hook::kQ, 0).data() + head * D;
  const float* const k = stream.values(Hook::kK, 0).data() + config.kv_head_of(head) * D;
  Matrix bias(T, T);
  for (int64_t i = 0; i < T; ++i) {
    for (int64_t j = 0; j < T; ++j) {
      const double product = config.score_scale() * dot(q + i * q_width, k + j * k_width, D);
      bias(i, j) = scores[(head * T + i) * T + j] - product;
    }
  }
  return bias;
}

// A head's rows of a term.
Eigen::Map<Matrix> of_head(std::vector<double>& term, int64_t head, int64_t num_tokens) {
  return {term.data() + head * num_tokens * num_tokens, num_tokens, num_tokens};
}

void check_shapes(const ResidualStream& stream, const ModelConfig& config) {
  const int64_t T = stream.num_tokens(), H = config.num_heads;
  const auto rows = std::ssize(stream.values(Hook::kQ, 0));
  const auto scores = std::ssize(stream.values(Hook::kAttnScores, 0));
  if (rows != T * config.attention_width() || scores != H * T * T) {
    throw InvalidArgument(fmt::format(
        "the trace holds {} queries and {} scores of {} tokens, which is not what a model with {} "
        "heads of {} computes; give the model that was run",
        rows, scores, T, H, config.head_dim()));
  }
}

// All terms in the order of ScoreShares.
std::array<const std::vector<double>*, 6> all_terms(const ScoreTerms& terms) {
  return {&terms.token_token,       &terms.token_position, &terms.position_token,
          &terms.position_position, &terms.relative_bias,  &terms.rest};
}

// The terms' covariances with the scores, summed over rows, and Σ s². Of pairs that are seen.
struct Covariances {
  std::array<double, 6> sums = {};
  double squares = 0;

  void add_row(const ScoreTerms& terms, int64_t row) {
    std::vector<int64_t> seen;
    std::vector<double> scores;
    for (int64_t pair = row * terms.num_tokens; pair < (row + 1) * terms.num_tokens; ++pair) {
      if (!std::isfinite(terms.relative_bias[pair])) continue;
      seen.push_back(pair);
      scores.push_back(0);
      for (const std::vector<double>* term : all_terms(terms)) scores.back() += (*term)[pair];
    }
    squares += dot(scores.data(), scores.data(), std::ssize(scores));
    const double mean =
        std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(scores.size());
    // A term's own mean need not be subtracted: these deviations sum to 0.
    for (size_t t = 0; t < sums.size(); ++t) {
      const std::vector<double>& term = *all_terms(terms)[t];
      for (size_t i = 0; i < seen.size(); ++i) sums[t] += term[seen[i]] * (scores[i] - mean);
    }
  }

  ScoreShares shares() const {
    const double variance = std::accumulate(sums.begin(), sums.end(), 0.0);
    if (variance <= kStateRounding * squares) return {};
    return {sums[0] / variance, sums[1] / variance, sums[2] / variance,
            sums[3] / variance, sums[4] / variance, sums[5] / variance};
  }
};

ScoreShares shares_of_heads(const ScoreTerms& terms, int64_t first, int64_t last) {
  Covariances covariances;
  for (int64_t row = first * terms.num_tokens; row < last * terms.num_tokens; ++row) {
    covariances.add_row(terms, row);
  }
  return covariances.shares();
}

}  // namespace

ScoreTrace::ScoreTrace()
    : Trace{Hook::kTokenEmbed, Hook::kPosEmbed, Hook::kTokenTypeEmbed, Hook::kFullEmbed,
            Hook::kQ,          Hook::kK,        Hook::kAttnScores} {}

bool ScoreTrace::wants(Hook hook, int64_t layer) const {
  return layer <= 0 && Trace::wants(hook, layer);
}

ScoreTerms first_layer_scores(const Model& model, const Trace& trace, const Positions& positions,
                              int64_t sequence) {
  const ModelConfig& config = model.config();
  check_score_terms(config);
  const BlockWeights& block = model.weights().blocks[config.block_of(0)];
  ResidualStream stream(model, trace, sequence);
  check_shapes(stream, config);
  stream.embed();
  if (config.norm_order == NormOrder::kPreNorm) {
    stream.normalize(block.attn_norm, stream.values(Hook::kFullEmbed, -1));
  }
  const Parts parts = parts_of(stream, config.d_model);
  const Parts all_q = project(parts, block.q), all_k = project(parts, block.k);

  const int64_t T = stream.num_tokens(), D = config.head_dim();
  const std::vector<double> zeros(config.num_heads * T * T);
  ScoreTerms terms{config.num_heads, T, zeros, zeros, zeros, zeros, zeros, zeros};
  const double scale = config.score_scale();
  PositionTables tables(config);
  const PositionSource source(model, positions, tables);
  for (int64_t h = 0; h < config.num_heads; ++h) {
    const int64_t g = config.kv_head_of(h);
    const auto of_q = [&](const Matrix& rows) { return rows.middleCols(h * D, D); };
    const auto of_k = [&](const Matrix& rows) { return rows.middleCols(g * D, D); };
    const Matrix q = scale * of_q(all_q.token), p = scale * of_q(all_q.position);
    const auto k = of_k(all_k.token), l = of_k(all_k.position);
    of_head(terms.token_token, h, T) = times_transposed(q, k);
    of_head(terms.token_position, h, T) = times_transposed(q, l);
    of_head(terms.position_token, h, T) = times_transposed(p, k);
    of_head(terms.position_position, h, T) = times_transposed(p, l);
    of_head(terms.rest, h, T) =
        times_transposed(scale * of_q(all_q.other), k + l + of_k(all_k.other)) +
        times_transposed(q + p, of_k(all_k.other));
    if (source.acts_on_scores(0)) of_head(terms.relative_bias, h, T) = bias_of(stream, config, h);
  }
  return terms;
}

ScoreShares score_shares(const ScoreTerms& terms, int64_t head) {
  check_index("head", head, terms.num_heads);
  return shares_of_heads(terms, head, head + 1);
}

ScoreShares score_shares(const ScoreTerms& terms) {
  return shares_of_heads(terms, 0, terms.num_heads);
}

}  // namespace phasor
