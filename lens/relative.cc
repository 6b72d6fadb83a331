#include "lens/relative.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "engine/positions/position_source.h"
#include "engine/positions/score_positions.h"
#include "lens/matrix.h"
#include "lens/residual_stream.h"
#include "lens/rows.h"

namespace phasor {
using namespace internal;

namespace {

constexpr double kNoPair = std::numeric_limits<double>::quiet_NaN();

void check_farthest(int64_t farthest) {
  if (farthest >= 0) return;
  throw InvalidArgument(fmt::format("the farthest offset is {}; it must be 0 or more", farthest));
}

Matrix to_matrix(const Tensor& tensor) {
  const std::vector<float> values = tensor.to_float();
  return Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
             values.data(), tensor.shape[0], std::ssize(values) / tensor.shape[0])
      .cast<double>();
}

/// One head's queries or keys as a distribution.
struct Vectors {
  Matrix mean;        // [1, D]
  Matrix covariance;  // [D, D]

  explicit Vectors(const Matrix& rows) : mean(rows.colwise().mean()) {
    const Matrix rest = rows.rowwise() - mean.row(0);
    covariance = transposed_times(rest, rest) / static_cast<double>(rows.rows());
  }
  Matrix second_moment() const { return covariance + transposed_times(mean, mean); }
};

/// The mean and deviation of each column.
OffsetCurve of_columns(const Matrix& columns) {
  const Eigen::RowVectorXd mean = columns.colwise().mean();
  const Eigen::RowVectorXd squares =
      (columns.rowwise() - mean).colwise().squaredNorm() / static_cast<double>(columns.rows());
  const Eigen::RowVectorXd deviation = squares.cwiseSqrt();
  return {{mean.begin(), mean.end()}, {deviation.begin(), deviation.end()}};
}

/// What one layer's positions do to one head's scores.
class Layer {
 public:
  Layer(const Model& model, const Trace& trace, int64_t layer, int64_t farthest,
        const Positions& positions, int64_t sequence)
      : config_(model.config()),
        layer_(layer),
        farthest_(farthest),
        tables_(config_),
        source_(model, positions, tables_),
        ends_at_itself_(source_.is_causal() && positions.edits().empty()),
        q_(rows_of(trace, Hook::kQ, sequence, config_.attention_width())),
        k_(rows_of(trace, Hook::kK, sequence, config_.kv_width())) {
    const Weights& weights = model.weights();
    if (source_.rotation() != nullptr) {
      frequencies_ = source_.rotation()->frequencies_of(layer, q_.rows());
    }
    if (!source_.is_own()) return;
    if (config_.position.bias != ScoreBias::kNone) {
      const Tensor& table = weights.relative_bias;
      own_bias_.emplace(config_, table.present() ? table.to_float() : std::vector<float>());
    }
    if (config_.position.disentangled) make_relative(weights);
  }

  OffsetEffect effect(int64_t head) const {
    const int64_t D = config_.head_dim();
    const auto of = [&](const Matrix& rows) -> Matrix { return rows.middleCols(head * D, D); };
    const Matrix keys = k_.middleCols(config_.kv_head_of(head) * D, D);
    OffsetEffect effect;
    const OffsetBias* const bias = own_bias_ ? &*own_bias_ : source_.bias();
    if (bias != nullptr) effect.bias = bias_of(*bias, head);
    if (!frequencies_.empty()) effect.rotation = rotation_of(of(q_), keys);
    const double factor = source_.attention_scale() * config_.score_scale();
    if (relative_keys_.size() > 0) {
      effect.content_to_position =
          of_columns(factor * times_transposed(of(q_), of(relative_keys_)));
    }
    if (relative_queries_.size() > 0) {
      effect.position_to_content =
          of_columns(factor * times_transposed(keys, of(relative_queries_)));
    }
    for (OffsetCurve* const curve : {&effect.bias, &effect.rotation, &effect.content_to_position,
                                     &effect.position_to_content}) {
      close_window(*curve);
    }
    return effect;
  }

 private:
  Matrix rows_of(const Trace& trace, Hook hook, int64_t sequence, int64_t width) const {
    const std::vector<float>& values = trace.at(hook, layer_, sequence).values;
    const std::vector<double> doubles(values.begin(), values.end());
    return as_matrix(doubles, width);
  }

  /// The layer's keys and queries of the row of each offset, [2K + 1, H·D].
  void make_relative(const Weights& weights) {
    const DisentangledConfig& terms = *config_.position.disentangled;
    const BlockWeights& block = weights.blocks[config_.block_of(layer_)];
    const Matrix table = to_matrix(weights.relative_table);
    const Disentangled buckets(terms);
    Matrix rows(2 * farthest_ + 1, config_.d_model);
    for (int64_t d = -farthest_; d <= farthest_; ++d) {
      rows.row(d + farthest_) = table.row(buckets.row_of(-d));
    }
    if (terms.norm) normalize(weights.relative_norm, rows);
    if (terms.content_to_position) relative_keys_ = map(block.k, rows);
    if (terms.position_to_content) relative_queries_ = map(block.q, rows);
  }

  void normalize(const NormWeights& norm, Matrix& rows) const {
    const Eigen::RowVectorXd weight = to_matrix(norm.weight).transpose();
    for (auto row : rows.rowwise()) {
      if (config_.norm == NormKind::kLayerNorm) row.array() -= row.mean();
      row /= std::sqrt(row.squaredNorm() / static_cast<double>(row.size()) + config_.norm_eps);
      row.array() *= weight.array();
    }
    if (norm.bias.present()) rows.rowwise() += to_matrix(norm.bias).transpose().row(0);
  }

  static Matrix map(const LinearWeights& weights, const Matrix& rows) {
    Matrix mapped = times_transposed(rows, to_matrix(weights.weight));
    if (weights.bias.present()) mapped.rowwise() += to_matrix(weights.bias).transpose().row(0);
    return mapped;
  }

  OffsetCurve bias_of(const OffsetBias& bias, int64_t head) const {
    OffsetCurve curve;
    for (int64_t d = -farthest_; d <= farthest_; ++d) {
      curve.mean.push_back(static_cast<double>(source_.attention_scale() * bias.at(head, d)));
    }
    curve.deviation.resize(curve.mean.size());
    return curve;
  }

  /// Of independent q and k with covariances A and B, where M = R_d − 1, the mean of ⟨q, M k⟩ is
  /// ⟨q̄, M k̄⟩, and its variance Σ (A + q̄ q̄ᵀ) ∘ M B Mᵀ + ⟨M k̄, A M k̄⟩.
  OffsetCurve rotation_of(const Matrix& queries, const Matrix& keys) const {
    const Vectors q(queries), k(keys);
    const Matrix moment = q.second_moment();
    OffsetCurve curve;
    for (int64_t d = -farthest_; d <= farthest_; ++d) {
      const Matrix mean = turned(k.mean, d);
      const Matrix covariance = turned(turned(k.covariance, d).transpose(), d);
      const double variance = moment.cwiseProduct(covariance).sum() +
                              times_transposed(times(mean, q.covariance), mean).value();
      curve.mean.push_back(config_.score_scale() * q.mean.row(0).dot(mean.row(0)));
      curve.deviation.push_back(config_.score_scale() * std::sqrt(std::max(variance, 0.0)));
    }
    return curve;
  }

  /// (R_d − 1)x for each row x.
  Matrix turned(const Matrix& x, int64_t d) const {
    const Rotation& rotation = *source_.rotation();
    const auto pairs = std::ssize(frequencies_);
    Matrix y = Matrix::Zero(x.rows(), x.cols());
    for (int64_t i = 0; i < pairs; ++i) {
      const int64_t a = rotation.interleaved() ? 2 * i : i;
      const int64_t b = rotation.interleaved() ? a + 1 : a + pairs;
      const double angle = frequencies_[i] * source_.attention_scale() * static_cast<double>(d);
      const double sine = std::sin(angle), half = std::sin(angle / 2);
      const double cosine_less_one = -2 * half * half;
      y.col(a) = cosine_less_one * x.col(a) - sine * x.col(b);
      y.col(b) = cosine_less_one * x.col(b) + sine * x.col(a);
    }
    return y;
  }

  void close_window(OffsetCurve& curve) const {
    const int64_t window = source_.window(layer_);
    if (curve.mean.empty()) return;
    for (int64_t d = -farthest_; d <= farthest_; ++d) {
      if ((window > 0 && std::abs(d) > window) || (ends_at_itself_ && d > 0)) {
        curve.mean[d + farthest_] = curve.deviation[d + farthest_] = kNoPair;
      }
    }
  }

  const ModelConfig& config_;
  int64_t layer_, farthest_;
  PositionTables tables_;
  PositionSource source_;
  bool ends_at_itself_;  // no token sees a later one
  Matrix q_, k_;         // [T, H·D], [T, G·D]
  std::vector<double> frequencies_;
  std::optional<OffsetBias> own_bias_;
  Matrix relative_keys_, relative_queries_;  // [2K + 1, H·D]
};

}  // namespace

std::vector<OffsetEffect> offset_effects(const Model& model, const Trace& trace, int64_t layer,
                                         int64_t farthest, const Positions& positions,
                                         int64_t sequence) {
  check_farthest(farthest);
  check_score_terms(model.config());
  check_index("layer", layer, model.config().num_layers);
  const Layer positions_of(model, trace, layer, farthest, positions, sequence);
  std::vector<OffsetEffect> effects;
  for (int64_t head = 0; head < model.config().num_heads; ++head) {
    effects.push_back(positions_of.effect(head));
  }
  return effects;
}

OffsetCurve by_offset(std::span<const double> pairs, std::span<const float> positions,
                      int64_t farthest) {
  check_farthest(farthest);
  const auto T = std::ssize(positions);
  if (T == 0 || std::ssize(pairs) != T * T) {
    throw InvalidArgument(
        fmt::format("{} numbers are not those of the pairs of {} tokens", pairs.size(), T));
  }
  std::vector<std::vector<double>> at(2 * farthest + 1);
  for (int64_t i = 0; i < T; ++i) {
    for (int64_t j = 0; j < T; ++j) {
      const int64_t d = std::lround(positions[j] - positions[i]);
      const double value = pairs[i * T + j];
      if (std::abs(d) <= farthest && std::isfinite(value)) at[d + farthest].push_back(value);
    }
  }
  OffsetCurve curve;
  for (std::vector<double>& values : at) {
    if (values.empty()) {
      curve.mean.push_back(kNoPair);
      curve.deviation.push_back(kNoPair);
      continue;
    }
    const OffsetCurve one =
        of_columns(Eigen::Map<const Matrix>(values.data(), std::ssize(values), 1));
    curve.mean.push_back(one.mean[0]);
    curve.deviation.push_back(one.deviation[0]);
  }
  return curve;
}

}  // namespace phasor
