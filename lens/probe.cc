// Ridge regression by eigenvectors, for every λ at once.

#include "phasor/lens/probe.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <limits>
#include <random>

#include "lens/batched_states.h"
#include "lens/rows.h"

namespace phasor {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

constexpr int kSmallestExponent = -10, kLargestExponent = 3;  // of λ over the mean eigenvalue

void check(std::span<const float> states, std::span<const double> targets, int64_t d_model) {
  const int64_t rows = num_rows(states, d_model);
  if (rows != std::ssize(targets)) {
    throw InvalidArgument(
        fmt::format("{} states have {} targets; each needs one", rows, targets.size()));
  }
  for (const double target : targets) {
    if (!std::isfinite(target)) throw InvalidArgument(fmt::format("a target is {}", target));
  }
}

// Centred states and the eigenvectors of their smaller product, XᵀX or XXᵀ, which solve for any
// targets and λ.
class Ridge {
 public:
  Ridge(std::span<const float> states, int64_t d_model)
      : num_states_(num_rows(states, d_model)), x_(num_states_, d_model) {
    for (size_t i = 0; i < states.size(); ++i) x_(i / d_model, i % d_model) = states[i];
    mean_ = x_.colwise().mean();
    x_.rowwise() -= mean_.transpose();
    dual_ = num_states_ < d_model;
    const Matrix product = dual_ ? Matrix(x_ * x_.transpose()) : Matrix(x_.transpose() * x_);
    const Eigen::SelfAdjointEigenSolver<Matrix> eigen(product);
    vectors_ = eigen.eigenvectors();
    values_ = eigen.eigenvalues();
    // What rounding leaves of a direction without variance counts as none.
    const double least = 1e-14 * static_cast<double>(product.rows()) * values_.maxCoeff();
    rank_ = (values_.array() > least).count();
    values_ = (values_.array() > least).select(values_, 0.0);
    mean_value_ = product.trace() / static_cast<double>(d_model);
  }

  Probe fit(std::span<const double> targets) const {
    Vector y = Eigen::Map<const Vector>(targets.data(), num_states_);
    Probe probe{.weights = std::vector<double>(x_.cols()),
                .mean = {mean_.begin(), mean_.end()},
                .intercept = y.mean()};
    y.array() -= y.mean();
    if (rank_ == 0) return probe;
    const Vector b = vectors_.transpose() * (dual_ ? y : x_.transpose() * y);
    probe.lambda = best_lambda(b, y.squaredNorm());
    const Vector w = vectors_ * (b.array() / (values_.array() + probe.lambda)).matrix();
    Eigen::Map<Vector>(probe.weights.data(), x_.cols()) = dual_ ? x_.transpose() * w : w;
    return probe;
  }

 private:
  // The λ of least generalised cross-validation error, of two the larger.
  double best_lambda(const Vector& b, double y_squares) const {
    // The squares of y's coordinates along the singular vectors of X.
    Vector squares = b.array().square();
    if (!dual_) squares = (values_.array() > 0).select(squares.array() / values_.array(), 0.0);
    squares = (values_.array() > 0).select(squares, 0.0);
    const double outside = std::max(0.0, y_squares - squares.sum());
    double best = 0, least = std::numeric_limits<double>::infinity();
    for (int exponent = kLargestExponent; exponent >= kSmallestExponent; --exponent) {
      const double lambda = std::pow(10.0, exponent) * mean_value_;
      const Eigen::ArrayXd left = lambda / (values_.array() + lambda);  // of each coordinate
      const double residue = outside + (left.square() * squares.array()).sum();
      const double freedom = (values_.array() > 0).select(left, 0.0).sum() +
                             static_cast<double>(num_states_ - 1 - rank_);
      const double error = residue / (freedom * freedom);
      if (!(error < least)) continue;
      least = error;
      best = lambda;
    }
    return best;
  }

  int64_t num_states_;
  Matrix x_;     // [n, C]
  Vector mean_;  // [C]
  bool dual_;    // n < C: XXᵀ is the smaller
  Matrix vectors_;
  Vector values_;  // ascending; 0 where there is no variance
  int64_t rank_ = 0;
  double mean_value_ = 0;  // of XᵀX
};

std::vector<double> shuffled(std::span<const double> values, uint64_t seed) {
  std::vector<double> result(values.begin(), values.end());
  std::mt19937_64 random(seed);
  for (size_t i = result.size(); i > 1; --i) std::swap(result[i - 1], result[random() % i]);
  return result;
}

}  // namespace

double Probe::predict(std::span<const float> state) const {
  double sum = intercept;
  for (size_t c = 0; c < weights.size(); ++c) sum += weights[c] * (state[c] - mean[c]);
  return sum;
}

Probe fit_probe(std::span<const float> states, std::span<const double> targets, int64_t d_model) {
  check(states, targets, d_model);
  return Ridge(states, d_model).fit(targets);
}

ProbeScore score_probe(const Probe& probe, std::span<const float> states,
                       std::span<const double> targets) {
  const auto d_model = std::ssize(probe.weights);
  check(states, targets, d_model);
  const auto count = static_cast<double>(targets.size());
  double mean = 0;
  for (const double y : targets) mean += y / count;
  double squares = 0, total = 0;
  ProbeScore score;
  for (int64_t i = 0; i < std::ssize(targets); ++i) {
    const double error = targets[i] - probe.predict(states.subspan(i * d_model, d_model));
    squares += error * error;
    total += (targets[i] - mean) * (targets[i] - mean);
    score.mean_absolute_error += std::abs(error) / count;
  }
  score.r2 = total > 0 ? 1 - squares / total : 0;
  return score;
}

ProbeReport probe_positions(const ProbeData& train, const ProbeData& held_out, int64_t d_model,
                            uint64_t seed) {
  check(train.states, train.targets, d_model);
  check(held_out.states, held_out.targets, d_model);
  const Ridge ridge(train.states, d_model);
  const Probe probe = ridge.fit(train.targets);
  Probe mean = probe;
  std::fill(mean.weights.begin(), mean.weights.end(), 0.0);
  const auto score = [&](const Probe& of) {
    return score_probe(of, held_out.states, held_out.targets);
  };
  return {.num_train = std::ssize(train.targets),
          .num_held_out = std::ssize(held_out.targets),
          .lambda = probe.lambda,
          .train = score_probe(probe, train.states, train.targets),
          .held_out = score(probe),
          .mean = score(mean),
          .shuffled = score(ridge.fit(shuffled(train.targets, seed)))};
}

std::vector<ProbeReport> probe_positions(Encoder& encoder, std::span<const ProbeText> train,
                                         std::span<const ProbeText> held_out,
                                         const RunOptions& options, uint64_t seed,
                                         const Progress& progress) {
  const ModelConfig& config = encoder.model().config();
  const auto text_of = [&](int64_t s) -> const ProbeText& {
    return s < std::ssize(train) ? train[s] : held_out[s - std::ssize(train)];
  };
  const int64_t count = std::ssize(train) + std::ssize(held_out);
  for (int64_t s = 0; s < count; ++s) {
    for (const int64_t place : text_of(s).places) {
      check_place(place, std::ssize(text_of(s).token_ids));
    }
  }
  std::vector<ProbeData> train_data(config.num_layers + 1), held_out_data = train_data;
  const auto keep = [&](int64_t l, int64_t s, std::span<const float> states) {
    ProbeData& data = (s < std::ssize(train) ? train_data : held_out_data)[l];
    for (const int64_t place : text_of(s).places) {
      const auto state = states.subspan(place * config.d_model, config.d_model);
      data.states.insert(data.states.end(), state.begin(), state.end());
      data.targets.push_back(static_cast<double>(place));
    }
  };
  const auto ids = [&](int64_t s) { return text_of(s).token_ids; };
  for_each_state(encoder, count, ids, options, progress, keep);
  std::vector<ProbeReport> reports;
  for (int64_t l = 0; l <= config.num_layers; ++l) {
    reports.push_back(probe_positions(train_data[l], held_out_data[l], config.d_model, seed));
  }
  return reports;
}

}  // namespace phasor
