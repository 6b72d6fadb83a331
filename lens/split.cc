// The two-way split of states that arrive one by one, and measures of its parts.

#include "phasor/lens/split.h"

#include <algorithm>
#include <numbers>
#include <numeric>

#include "lens/matrix.h"
#include "lens/rows.h"

namespace phasor {
using namespace internal;

TwoWaySplit::TwoWaySplit(int64_t num_positions, int64_t num_groups, int64_t d_model)
    : num_positions_(num_positions), num_groups_(num_groups), d_model_(d_model) {
  if (num_positions < 1 || num_groups < 1 || d_model < 1) {
    throw InvalidArgument(
        fmt::format("cannot split states of width {} at {} positions in {} groups; each must be "
                    "at least 1",
                    d_model, num_positions, num_groups));
  }
  added_.resize(num_positions * num_groups);
  position_sums_.resize(num_positions * d_model);
  group_sums_.resize(num_groups * d_model);
}

void TwoWaySplit::add(int64_t position, int64_t group, std::span<const float> state) {
  if (position < 0 || position >= num_positions_ || group < 0 || group >= num_groups_ ||
      std::ssize(state) != d_model_) {
    throw InvalidArgument(fmt::format(
        "a state of width {} at position {} in group {} does not belong to a split of width {}, "
        "{} positions and {} groups",
        state.size(), position, group, d_model_, num_positions_, num_groups_));
  }
  if (added_[position * num_groups_ + group]) {
    throw InvalidArgument(fmt::format(
        "the state at position {} in group {} was added before; a split needs one for each pair",
        position, group));
  }
  added_[position * num_groups_ + group] = true;
  if (count_++ == 0) origin_.assign(state.begin(), state.end());
  double* const position_sum = &position_sums_[position * d_model_];
  double* const group_sum = &group_sums_[group * d_model_];
  double moved_squares = 0;
  for (int64_t c = 0; c < d_model_; ++c) {
    const double moved = state[c] - origin_[c];
    position_sum[c] += moved;
    group_sum[c] += moved;
    moved_squares += moved * moved;
  }
  moved_squares_ += moved_squares;
  squares_ += dot(state.data(), state.data(), d_model_);
}

Split TwoWaySplit::result() const {
  if (count_ != num_positions_ * num_groups_) {
    throw InvalidArgument(
        fmt::format("{} states were added to a split of {} positions and {} "
                    "groups, which needs one for each pair",
                    count_, num_positions_, num_groups_));
  }
  const auto count = static_cast<double>(count_);
  std::vector<double> mean(d_model_);  // of h − origin
  for (size_t i = 0; i < position_sums_.size(); ++i) mean[i % d_model_] += position_sums_[i];
  for (double& value : mean) value /= count;

  // Turns sums over `size` states each into means without μ.
  const auto means_of = [&](std::vector<double> sums, int64_t size) {
    for (size_t i = 0; i < sums.size(); ++i) {
      sums[i] = sums[i] / static_cast<double>(size) - mean[i % d_model_];
    }
    return sums;
  };
  Split split{.mean = mean,
              .position_means = means_of(position_sums_, num_groups_),
              .group_means = means_of(group_sums_, num_positions_)};
  for (int64_t c = 0; c < d_model_; ++c) split.mean[c] += origin_[c];

  const auto squares_of = [](const std::vector<double>& x) {
    return dot(x.data(), x.data(), std::ssize(x));
  };
  const double total = std::max(0.0, moved_squares_ - count * squares_of(mean));
  split.variance = total / count;
  // A term of the sum of squares; means that are only rounding are set to 0 too.
  const auto term = [&](std::vector<double>& means, int64_t states_each) {
    const double squares = static_cast<double>(states_each) * squares_of(means);
    if (squares > kStateRounding * squares_) return squares;
    std::fill(means.begin(), means.end(), 0.0);
    return 0.0;
  };
  const double position = term(split.position_means, num_groups_);
  const double group = term(split.group_means, num_positions_);
  if (total <= kStateRounding * squares_) return split;
  split.position = position / total;
  split.group = group / total;
  split.rest = std::max(0.0, 1 - split.position - split.group);
  return split;
}

LatinSquareSplit::LatinSquareSplit(int64_t n, int64_t d_model, std::span<const int64_t> diagonals)
    : n_(n), d_model_(d_model), square_(n, n, d_model) {
  kept_.assign(n, -1);
  for (int64_t d = 0; diagonals.empty() && d < n; ++d) kept_[d] = num_kept_++;
  for (const int64_t d : diagonals) {
    if (d < 0 || d >= n || kept_[d] >= 0) {
      throw InvalidArgument(fmt::format(
          "diagonal {} of a square of {} is out of range or given twice; they are 0 to {}", d, n,
          n - 1));
    }
    kept_[d] = num_kept_++;
  }
  cells_.resize(num_kept_ * n * d_model);
}

void LatinSquareSplit::add(int64_t place, int64_t token, std::span<const float> state) {
  square_.add(place, token, state);
  const int64_t kept = kept_[(token - place + n_) % n_];
  if (kept >= 0) {
    double* const cell = &cells_[(kept * n_ + place) * d_model_];
    for (int64_t c = 0; c < d_model_; ++c) cell[c] += static_cast<double>(state[c]);
    cell_squares_ += dot(state.data(), state.data(), d_model_);
  }
  if (++count_ == n_ * n_) end_square();
}

void LatinSquareSplit::end_square() {
  const Split square = square_.result();
  variances_ += square.variance;
  means_.add(square.mean, d_model_);
  positions_.add(square.position_means, d_model_);
  tokens_.add(square.group_means, d_model_);
  ++num_squares_;
  count_ = 0;
  square_ = TwoWaySplit(n_, n_, d_model_);
}

void LatinSquareSplit::Sums::add(const std::vector<double>& x, int64_t d_model) {
  rows.resize(x.size());
  squares.resize(x.size() / d_model);
  for (size_t i = 0; i < x.size(); ++i) rows[i] += x[i];
  for (size_t r = 0; r < squares.size(); ++r)
    squares[r] += dot(&x[r * d_model], &x[r * d_model], d_model);
}

std::vector<double> LatinSquareSplit::Sums::products(int64_t num_squares) const {
  const auto count = static_cast<double>(num_squares);
  const auto width = std::ssize(rows) / std::ssize(squares);
  std::vector<double> products;
  for (size_t r = 0; r < squares.size(); ++r) {
    const double* const row = &rows[r * width];
    products.push_back((dot(row, row, width) - squares[r]) / (count * (count - 1)));
  }
  return products;
}

double LatinSquareSplit::Sums::product(int64_t num_squares) const {
  const std::vector<double> all = products(num_squares);
  return std::accumulate(all.begin(), all.end(), 0.0);
}

TokenSplit LatinSquareSplit::result() const {
  if (count_ != 0 || num_squares_ < 2) {
    throw InvalidArgument(fmt::format(
        "{} Latin squares and {} states of another were added; give two whole squares or more: one "
        "cannot tell what the neighbours do from what the token does",
        num_squares_, count_));
  }
  const auto squares = static_cast<double>(num_squares_), n = static_cast<double>(n_);
  const auto mean_of = [&](std::vector<double> sums) {
    for (double& value : sums) value /= squares;
    return sums;
  };
  TokenSplit split{.mean = mean_of(means_.rows),
                   .position_means = mean_of(positions_.rows),
                   .token_means = mean_of(tokens_.rows),
                   .position_squares = positions_.products(num_squares_)};
  const double all_squares = (variances_ + means_.squares[0]) / squares;  // mean ‖h‖²
  const double rounding = kStateRounding * all_squares;
  split.variance = all_squares - means_.product(num_squares_);
  if (split.variance <= rounding) {
    split.variance = std::max(split.variance, 0.0);
    return split;
  }
  const double within =
      (cell_squares_ - dot(cells_.data(), cells_.data(), std::ssize(cells_)) / squares) /
      ((squares - 1) * n * static_cast<double>(num_kept_));
  split.position = positions_.product(num_squares_) / n / split.variance;
  split.token = tokens_.product(num_squares_) / n / split.variance;
  split.context = within > rounding ? within / split.variance : 0;
  split.both = 1 - split.position - split.token - split.context;
  return split;
}

double smoothness(std::span<const double> table, int64_t d_model) {
  const Matrix rows = centered(table, d_model);
  const double total = rows.squaredNorm();  // by Parseval's theorem
  const auto count = static_cast<double>(rows.rows());
  double low = 0;
  for (int64_t k = 1; k <= (rows.rows() - 1 + 3) / 4; ++k) {
    Eigen::RowVectorXd transformed = Eigen::RowVectorXd::Zero(d_model);
    for (int64_t p = 0; p < rows.rows(); ++p) {
      const double angle =
          std::numbers::pi * (static_cast<double>(p) + 0.5) * static_cast<double>(k) / count;
      transformed += std::sqrt(2.0 / count) * std::cos(angle) * rows.row(p);
    }
    low += transformed.squaredNorm();
  }
  return total > 0 ? low / total : 0;
}

double position_group_cosine(std::span<const double> position_means,
                             std::span<const double> group_means, int64_t d_model) {
  // The nonzero rows as unit vectors.
  const auto directions = [&](std::span<const double> means) {
    std::vector<double> units;
    for (size_t first = 0; first < means.size(); first += d_model) {
      const double length = norm(&means[first], d_model);
      if (!(length > 0)) continue;
      for (int64_t c = 0; c < d_model; ++c) units.push_back(means[first + c] / length);
    }
    return units;
  };
  const std::vector<double> positions = directions(position_means);
  const std::vector<double> groups = directions(group_means);
  double sum = 0;
  int64_t pairs = 0;
  for (size_t p = 0; p < positions.size(); p += d_model) {
    for (size_t g = 0; g < groups.size(); g += d_model, ++pairs) {
      sum += std::abs(dot(&positions[p], &groups[g], d_model));
    }
  }
  return pairs > 0 ? sum / static_cast<double>(pairs) : 0;
}

}  // namespace phasor
