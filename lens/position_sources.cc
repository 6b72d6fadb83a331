// The position component of the parts of a residual stream, from the orders of one text.

#include <algorithm>
#include <cmath>
#include <random>

#include "lens/batched_states.h"
#include "lens/latin_squares.h"
#include "lens/matrix.h"
#include "phasor/lens/residual.h"

namespace phasor {
using namespace internal;

namespace {

/// A position component, of which every square has an estimate; those of different squares are
/// multiplied.
class Component {
 public:
  Component(int64_t n, int64_t d_model)
      : square_(Matrix::Zero(n, d_model)), sum_(Matrix::Zero(n, d_model)) {}

  /// To add the states of a square's n runs to.
  Matrix& square() { return square_; }
  /// Σ_{s ≠ r} ⟨x^s, x^r⟩ of the squares so far.
  double product() const { return sum_.squaredNorm() - squares_; }
  void end_square() {
    square_ /= static_cast<double>(square_.rows());
    square_.rowwise() -= square_.colwise().mean().eval();
    sum_ += square_;
    squares_ += square_.squaredNorm();
    square_.setZero();
  }

 private:
  Matrix square_, sum_;  // of the x^s, [n, C]
  double squares_ = 0;   // Σ_s ‖x^s‖²
};

/// The position components of one hidden state, of which a square s has pos^s [n, C], and what they
/// are multiplied with: with x^s of a part in the same square,
///
///     share = Σ_s ⟨x^s, Σ_r pos^r − pos^s⟩ / Σ_s ⟨pos^s, Σ_r pos^r − pos^s⟩,
///
/// the divisor being the sum over the parts, so that rounding is left out of the shares.
class StateSources {
 public:
  StateSources(const LatinSquares& places, int64_t d_model)
      : squares_(places.num_runs() / places.n(), Matrix::Zero(places.n(), d_model)),
        kinds_(kNumKinds, Component(places.n(), d_model)),
        at_edges_(places.at_edges()) {}

  /// First, every run's states [T, C].
  void add_states(const LatinSquares& places, int64_t run, std::span<const float> states);
  void end_states();
  /// Then its parts.
  void add_parts(const LatinSquares& places, int64_t run, std::span<const ResidualPart> parts);
  PositionSources result() const;

 private:
  enum Kind { kDirect, kByAttention, kByMlp, kOther, kNumKinds };
  static Kind kind_of(ResidualSource source) {
    return source == ResidualSource::kPosition    ? kDirect
           : source == ResidualSource::kAttention ? kByAttention
           : source == ResidualSource::kMlp       ? kByMlp
                                                  : kOther;
  }

  /// Σ over the places in the interior.
  Eigen::RowVectorXd interior_of(const Matrix& rows) const {
    Eigen::RowVectorXd sum = Eigen::RowVectorXd::Zero(rows.cols());
    for (int64_t p = 0; p < rows.rows(); ++p)
      if (!at_edges_[p]) sum += rows.row(p);
    return sum;
  }

  std::vector<Matrix> squares_;  // n·pos^s; after end_states(): the sum of the others' pos
  double state_squares_ = 0;     // Σ ‖h‖², for the size of rounding
  double product_ = 0;  // Σ_{s ≠ r} ⟨pos^s, pos^r⟩; 0: there is no position component
  std::vector<SourceShare> shares_;
  std::vector<Component> kinds_;  // [kNumKinds]
  std::vector<bool> at_edges_;
  double interior_[kNumKinds] = {};  // of the products of the kinds
};

void StateSources::add_states(const LatinSquares& places, int64_t run,
                              std::span<const float> states) {
  Matrix& square = squares_[run / places.n()];
  for (int64_t p = 0; p < places.n(); ++p) {
    const Eigen::Map<const Eigen::RowVectorXf> row(&states[places.place(p) * square.cols()],
                                                   square.cols());
    square.row(p) += row.cast<double>();
    state_squares_ += row.cast<double>().squaredNorm();
  }
}

void StateSources::end_states() {
  Matrix sum = Matrix::Zero(squares_[0].rows(), squares_[0].cols());
  double squares = 0;  // Σ_s ‖pos^s‖²
  for (Matrix& square : squares_) {
    square /= static_cast<double>(square.rows());
    square.rowwise() -= square.colwise().mean().eval();
    sum += square;
    squares += square.squaredNorm();
  }
  // Each of a square's n rows is the mean of n states.
  const double rounding = kStateRounding * state_squares_ / static_cast<double>(sum.rows());
  if (squares > rounding) product_ = std::max(sum.squaredNorm() - squares, 0.0);
  for (Matrix& square : squares_) square = sum - square;
}

void StateSources::add_parts(const LatinSquares& places, int64_t run,
                             std::span<const ResidualPart> parts) {
  const Matrix& others = squares_[run / places.n()];
  const Eigen::RowVectorXd others_inside = interior_of(others);
  if (shares_.empty()) {
    for (const ResidualPart& part : parts) shares_.push_back({part.source, part.layer, part.head});
  }
  for (size_t k = 0; k < parts.size(); ++k) {
    const Kind kind = kind_of(parts[k].source);
    Matrix& square = kinds_[kind].square();
    double product = 0, inside = 0;
    Eigen::RowVectorXd sum = Eigen::RowVectorXd::Zero(others.cols());
    for (int64_t p = 0; p < places.n(); ++p) {
      const Eigen::Map<const Eigen::RowVectorXd> row(
          &parts[k].values[places.place(p) * others.cols()], others.cols());
      const double of_place = others.row(p).dot(row);
      product += of_place;
      if (!at_edges_[p]) inside += of_place;
      sum += row;
      square.row(p) += row;
    }
    const auto n = static_cast<double>(places.n());
    shares_[k].share += product / n;
    interior_[kind] += (inside - others_inside.dot(sum) / n) / n;  // less the row's mean
  }
  if ((run + 1) % places.n() != 0) return;
  for (Component& kind : kinds_) kind.end_square();
}

PositionSources StateSources::result() const {
  double total = 0;
  for (const SourceShare& part : shares_) total += part.share;
  const bool any = product_ > 0 && total > 0;
  SourceSum sums[kNumKinds];
  for (int kind = 0; kind < kNumKinds; ++kind) {
    const double product = std::max(kinds_[kind].product(), 0.0);
    sums[kind] = {.share = any ? 0 : std::nan(""),
                  .length = any ? std::sqrt(product / product_) : std::nan(""),
                  .interior = any ? interior_[kind] / total : std::nan("")};
  }
  std::vector<SourceShare> parts = shares_;
  for (SourceShare& part : parts) {
    part.share = any ? part.share / total : std::nan("");
    sums[kind_of(part.source)].share += part.share;
  }
  return {std::move(parts), sums[kDirect], sums[kByAttention], sums[kByMlp], sums[kOther]};
}

}  // namespace

std::vector<PositionSources> position_sources(const Encoder& encoder,
                                              std::span<const int32_t> token_ids,
                                              std::span<const int64_t> movable,
                                              const RunOptions& options, int64_t num_squares,
                                              uint64_t seed, const Progress& progress, bool heads) {
  std::mt19937_64 random(seed);
  const LatinSquares squares(token_ids, movable, num_squares, random);
  const Model& model = encoder.model();
  std::vector<StateSources> states(model.config().num_layers + 1,
                                   StateSources(squares, model.config().d_model));
  const auto ids = [&](int64_t run) { return squares.ids(run); };
  const Trace trace = residual_trace(heads);
  const int64_t num_runs = squares.num_runs();
  // Runs that are in memory together are run once, others again for their parts.
  const bool together =
      num_runs * squares.num_tokens() <= tokens_at_once(trace, model.config(), options);
  const auto half = [&](int64_t done_before) -> Progress {
    if (!progress) return {};
    return
        [&, done_before](int64_t done, int64_t total) { progress(done_before + done, 2 * total); };
  };
  const auto add_state = [&](int64_t l, int64_t run, std::span<const float> values) {
    states[l].add_states(squares, run, values);
  };
  const auto end_states = [&] {
    for (StateSources& state : states) state.end_states();
  };
  if (!together) {
    for_each_state(encoder, num_runs, ids, options, half(0), add_state);
    end_states();
  }
  const auto visit = [&](const Trace& batch, int64_t first, int64_t count) {
    if (together) {
      for (int64_t l = 0; l < std::ssize(states); ++l) {
        for (int64_t i = 0; i < count; ++i) add_state(l, i, batch.hidden_state(l, i).values);
      }
      end_states();
    }
    for (int64_t i = 0; i < count; ++i) {
      const auto add = [&](int64_t l, std::span<const ResidualPart> parts) {
        states[l].add_parts(squares, first + i, parts);
      };
      for_each_residual_state(model, batch, i, add, options.cut_residuals);
    }
  };
  for_each_batch(encoder, num_runs, ids, options, half(num_runs), trace, visit);
  std::vector<PositionSources> results;
  for (const StateSources& state : states) results.push_back(state.result());
  return results;
}

}  // namespace phasor
