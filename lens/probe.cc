// Ridge regression, the choice of λ, and scores on unseen texts.

#include "phasor/lens/probe.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <limits>
#include <random>

#include "lens/batched_states.h"
#include "lens/latin_squares.h"
#include "lens/matrix.h"
#include "lens/rows.h"
#include "phasor/executor.h"

namespace phasor {
using namespace internal;

namespace {

using Eigen::RowVectorXd;

// Exponents of λ divided by the mean eigenvalue.
constexpr int kSmallestExponent = -8, kLargestExponent = 4;
constexpr int64_t kParts = 3;  // one of which chooses λ

void check(const ProbeData& data, int64_t d_model) {
  const int64_t rows = num_rows(std::span<const float>(data.states), d_model);
  const auto has_one_each = [&](size_t size) { return static_cast<int64_t>(size) == rows; };
  const auto may_have = [&](size_t size) { return size == 0 || has_one_each(size); };
  if (!has_one_each(data.targets.size()) || !may_have(data.texts.size()) ||
      !may_have(data.token_ids.size()) || !may_have(data.at_edges.size())) {
    throw InvalidArgument(fmt::format(
        "{} states have {} targets, {} texts, {} token ids and {} edges; each needs one", rows,
        data.targets.size(), data.texts.size(), data.token_ids.size(), data.at_edges.size()));
  }
  for (const double target : data.targets) {
    if (!std::isfinite(target)) throw InvalidArgument(fmt::format("a target is {}", target));
  }
}

// States for the regression of several targets at once.
class Ridge {
 public:
  explicit Ridge(Matrix states) : x_(std::move(states)), mean_(x_.colwise().mean()) {
    const double rounding = kStateRounding * x_.squaredNorm();
    x_.rowwise() -= mean_;
    dual_ = x_.rows() < x_.cols();
    const int64_t size = dual_ ? x_.rows() : x_.cols();
    product_ = Matrix::Zero(size, size);
    auto lower = product_.selfadjointView<Eigen::Lower>();
    if (dual_) {
      lower.rankUpdate(x_);
    } else {
      lower.rankUpdate(x_.transpose());
    }
    const double total = product_.trace();
    mean_eigenvalue_ = total > rounding ? total / static_cast<double>(x_.cols()) : 0;
  }

  const RowVectorXd& mean() const { return mean_; }  // x̄, [C]
  double lambda(int exponent) const { return std::pow(10.0, exponent) * mean_eigenvalue_; }

  // (XᵀX + λI)⁻¹ Xᵀy = Xᵀ(XXᵀ + λI)⁻¹ y for the columns y of targets [n, K] less their means: [C,
  // K].
  Matrix weights(const Matrix& targets, int exponent) const {
    if (!(mean_eigenvalue_ > 0)) return Matrix::Zero(x_.cols(), targets.cols());
    const Matrix y = targets.rowwise() - targets.colwise().mean();
    Matrix system = product_;
    system.diagonal().array() += lambda(exponent);
    const Eigen::LDLT<Matrix> solver(system);
    if (dual_) return transposed_times(x_, solver.solve(y));
    return solver.solve(transposed_times(x_, y));
  }

 private:
  Matrix x_;                // [n, C]
  RowVectorXd mean_;        // [C]
  bool dual_;               // n < C: XXᵀ is the smaller
  Matrix product_;          // its lower half
  double mean_eigenvalue_;  // 0: the states are constant
};

// Rows of data that choose λ, and those that are fitted meanwhile.
struct ProbeParts {
  explicit ProbeParts(const ProbeData& data) {
    const bool by_text = !data.texts.empty() && data.texts.back() + 1 >= kParts;
    for (int64_t i = 0; i < std::ssize(data.targets); ++i) {
      const bool chooses = (by_text ? data.texts[i] : i) % kParts == kParts - 1;
      (chooses ? choosing : fitting).push_back(i);
    }
  }

  std::vector<int64_t> fitting, choosing;
};

Matrix rows_of(const Matrix& matrix, const std::vector<int64_t>& rows) {
  Matrix chosen(std::ssize(rows), matrix.cols());
  for (int64_t i = 0; i < std::ssize(rows); ++i) chosen.row(i) = matrix.row(rows[i]);
  return chosen;
}

// One for each of the targets [n, K].
std::vector<int> best_exponents(const Matrix& states, const Matrix& targets,
                                const ProbeParts& parts) {
  std::vector<int> best(targets.cols(), kLargestExponent);
  if (parts.choosing.empty()) return best;
  const Ridge ridge(rows_of(states, parts.fitting));
  const Matrix fitted = rows_of(targets, parts.fitting);
  const Matrix x = rows_of(states, parts.choosing).rowwise() - ridge.mean();
  const Matrix y = rows_of(targets, parts.choosing).rowwise() - fitted.colwise().mean();
  std::vector<double> least(targets.cols(), std::numeric_limits<double>::infinity());
  for (int exponent = kLargestExponent; exponent >= kSmallestExponent; --exponent) {
    const Matrix errors = y - times(x, ridge.weights(fitted, exponent));
    for (int64_t k = 0; k < targets.cols(); ++k) {
      const double error = errors.col(k).squaredNorm();
      if (!(error < least[k])) continue;
      least[k] = error;
      best[k] = exponent;
    }
  }
  return best;
}

// A probe for each of the targets [n, K].
std::vector<Probe> fit(const ProbeData& data, const Matrix& targets, int64_t d_model) {
  using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Matrix states =
      Eigen::Map<const Rows>(data.states.data(), targets.rows(), d_model).cast<double>();
  const std::vector<int> exponents = best_exponents(states, targets, ProbeParts(data));
  const Ridge ridge(states);
  std::vector<Probe> probes;
  for (int64_t k = 0; k < targets.cols(); ++k) {
    const Matrix weights = ridge.weights(targets.col(k), exponents[k]);  // [C, 1]
    probes.push_back({.weights = {weights.data(), weights.data() + d_model},
                      .mean = {ridge.mean().data(), ridge.mean().data() + d_model},
                      .intercept = targets.col(k).mean(),
                      .lambda = ridge.lambda(exponents[k])});
  }
  return probes;
}

Matrix column(const std::vector<double>& values) {
  return Eigen::Map<const Eigen::VectorXd>(values.data(), std::ssize(values));
}

/// The targets of states in the control task: a token has that of a random training state.
std::vector<double> control_targets(const ProbeData& data, const ProbeData& train, uint64_t seed) {
  std::vector<double> targets;
  for (const int32_t id : data.token_ids) {
    std::mt19937_64 random(seed + static_cast<uint32_t>(id));
    targets.push_back(train.targets[random() % train.targets.size()]);
  }
  return targets;
}

/// Of states [n, C] that are not left out; NaN where all are.
ProbeScore score(const Probe& probe, std::span<const float> states, std::span<const double> targets,
                 const std::vector<bool>& left_out = {}) {
  const auto d_model = std::ssize(probe.weights);
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < std::ssize(targets); ++i)
    if (left_out.empty() || !left_out[i]) rows.push_back(i);
  if (rows.empty()) return {.r2 = std::nan(""), .mean_absolute_error = std::nan("")};
  const auto count = static_cast<double>(rows.size());
  const double first = targets[rows[0]];  // subtracted, so that equal targets have no rounding
  double mean = 0;
  for (const int64_t i : rows) mean += (targets[i] - first) / count;
  double squares = 0, total = 0;
  ProbeScore score;
  for (const int64_t i : rows) {
    const double y = targets[i];
    const double error = y - probe.predict(states.subspan(i * d_model, d_model));
    squares += error * error;
    total += (y - first - mean) * (y - first - mean);
    score.mean_absolute_error += std::abs(error) / count;
  }
  score.r2 = total > 0 ? 1 - squares / total : 0;
  return score;
}

}  // namespace

double Probe::predict(std::span<const float> state) const {
  double sum = intercept;
  for (size_t c = 0; c < weights.size(); ++c) sum += weights[c] * (state[c] - mean[c]);
  return sum;
}

Probe fit_probe(const ProbeData& data, int64_t d_model) {
  check(data, d_model);
  return fit(data, column(data.targets), d_model).front();
}

ProbeScore score_probe(const Probe& probe, const ProbeData& data) {
  check(data, std::ssize(probe.weights));
  return score(probe, data.states, data.targets);
}

ProbeScore probe_token_embeddings(const Model& model, std::span<const ProbeText> train,
                                  std::span<const ProbeText> held_out) {
  const ModelConfig& config = model.config();
  const int64_t width = config.embedding_width();
  std::vector<float> row(width);
  const auto data_of = [&](std::span<const ProbeText> texts) {
    ProbeData data;
    for (int64_t i = 0; i < std::ssize(texts); ++i) {
      for (const int64_t place : texts[i].places) {
        check_place(place, std::ssize(texts[i].token_ids));
        const int64_t id = texts[i].token_ids[place];
        if (id < 0 || id >= config.vocab_size) {
          throw InvalidArgument(fmt::format(
              "token id {} is outside the vocabulary; ids are 0 to {}", id, config.vocab_size - 1));
        }
        model.weights().token_embedding.copy_to(row.data(), id * width, width);
        for (const float value : row) data.states.push_back(config.embedding_scale * value);
        data.targets.push_back(static_cast<double>(place));
        data.texts.push_back(i);
      }
    }
    check(data, width);
    return data;
  };
  const ProbeData fitted = data_of(train);
  return score_probe(fit_probe(fitted, width), data_of(held_out));
}

ProbeReport probe_positions(const ProbeData& train, const ProbeData& held_out, int64_t d_model,
                            uint64_t seed) {
  check(train, d_model);
  check(held_out, d_model);
  const bool has_control = !train.token_ids.empty() && !held_out.token_ids.empty();
  Matrix targets(std::ssize(train.targets), has_control ? 3 : 2);
  targets.col(0) = column(train.targets);  // not with <<, which asserts that it ends
  std::mt19937_64 random(seed);
  for (int64_t i = 0; const int64_t from : permutation(targets.rows(), random))
    targets(i++, 1) = train.targets[from];  // shuffled
  if (has_control) targets.col(2) = column(control_targets(train, train, seed));
  const std::vector<Probe> probes = fit(train, targets, d_model);
  const Probe& probe = probes.front();
  Probe mean = probe;
  std::fill(mean.weights.begin(), mean.weights.end(), 0.0);
  ProbeScore control = {.r2 = std::nan(""), .mean_absolute_error = std::nan("")};
  if (has_control)
    control = score(probes[2], held_out.states, control_targets(held_out, train, seed));
  return {.num_train = std::ssize(train.targets),
          .num_held_out = std::ssize(held_out.targets),
          .lambda = probe.lambda,
          .train = score_probe(probe, train),
          .held_out = score_probe(probe, held_out),
          .mean = score_probe(mean, held_out),
          .shuffled = score_probe(probes[1], held_out),
          .control = control,
          .interior = score(probe, held_out.states, held_out.targets, held_out.at_edges)};
}

std::vector<ProbeReport> probe_positions(const Encoder& encoder, std::span<const ProbeText> train,
                                         std::span<const ProbeText> held_out,
                                         const RunOptions& options, uint64_t seed,
                                         const Progress& progress) {
  const ModelConfig& config = encoder.model().config();
  const auto text_of = [&](int64_t s) -> const ProbeText& {
    return s < std::ssize(train) ? train[s] : held_out[s - std::ssize(train)];
  };
  const int64_t count = std::ssize(train) + std::ssize(held_out);
  for (int64_t s = 0; s < count; ++s) {
    const auto& [token_ids, places] = text_of(s);
    if (!places.empty()) check_places(places, std::ssize(token_ids));
  }
  std::vector<ProbeData> train_data(config.num_layers + 1), held_out_data = train_data;
  const auto keep = [&](int64_t l, int64_t s, std::span<const float> states) {
    const bool trains = s < std::ssize(train);
    ProbeData& data = (trains ? train_data : held_out_data)[l];
    const auto& [token_ids, places] = text_of(s);
    const std::vector<bool> edges = at_edges(places, std::ssize(token_ids));
    for (size_t i = 0; i < places.size(); ++i) {
      const auto state = states.subspan(places[i] * config.d_model, config.d_model);
      data.states.insert(data.states.end(), state.begin(), state.end());
      data.targets.push_back(static_cast<double>(places[i]));
      data.texts.push_back(trains ? s : s - std::ssize(train));
      data.token_ids.push_back(token_ids[places[i]]);
      data.at_edges.push_back(edges[i]);
    }
  };
  const auto ids = [&](int64_t s) { return text_of(s).token_ids; };
  for_each_state(encoder, count, ids, options, progress, keep);
  for (const auto* data : {&train_data, &held_out_data}) check(data->front(), config.d_model);
  std::vector<ProbeReport> reports(config.num_layers + 1);
  const std::shared_ptr<Executor> executor = make_executor(encoder.threads());
  executor->run(static_cast<int>(reports.size()), [&](int l) {
    reports[l] = probe_positions(train_data[l], held_out_data[l], config.d_model, seed);
  });
  return reports;
}

}  // namespace phasor
