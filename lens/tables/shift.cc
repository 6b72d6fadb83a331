// Maps a table's rows to those k positions on: the rotation of a sinusoid, and the best linear map.

#include <fmt/format.h>

#include <Eigen/QR>

#include "lens/matrix.h"
#include "phasor/lens/table.h"
#include "phasor/positions.h"

namespace phasor {
using namespace internal;

namespace {

// The residual of a prediction, and the rows' squared distances from a mean.
struct Residue {
  double left = 0;
  double total = 0;
  double rounding = 0;  // of the rows and of the mean
  double r2() const { return total > rounding ? 1 - left / total : (left > rounding ? 0.0 : 1.0); }
};

void add(const Matrix& predicted, const Matrix& rows, const Eigen::RowVectorXd& mean,
         Residue& residue) {
  residue.left += (rows - predicted).squaredNorm();
  residue.total += (rows.rowwise() - mean).squaredNorm();
  residue.rounding += 4 * kRounding * kRounding * rows.squaredNorm();
}

// Rows first, first + 2, … of x, up to `end`.
Matrix every_other(Eigen::Map<const Matrix> x, int64_t first, int64_t end) {
  using EveryOther = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
  return EveryOther(x.data() + first * x.cols(), (end - first + 1) / 2, x.cols(),
                    Eigen::OuterStride<>(2 * x.cols()));
}

}  // namespace

std::vector<double> rotation(SinusoidalLayout layout, int64_t d_model, double k, double base) {
  Matrix turned = Matrix::Identity(d_model, d_model);
  for (const ColumnPair& pair : column_pairs(layout, d_model, base)) {
    if (pair.cosine < 0) {
      throw InvalidArgument(
          fmt::format("the last sine of the {} layout has no cosine to turn with at the odd width "
                      "{}; take an even one",
                      to_string(layout), d_model));
    }
    const double angle = k * pair.frequency;
    turned(pair.sine, pair.sine) = turned(pair.cosine, pair.cosine) = std::cos(angle);
    turned(pair.sine, pair.cosine) = std::sin(angle);
    turned(pair.cosine, pair.sine) = -std::sin(angle);
  }
  return to_vector(turned);
}

LinearShift linear_shift(std::span<const double> table, int64_t d_model, int64_t k) {
  const auto rows = as_matrix(table, d_model);
  const int64_t pairs = rows.rows() - k;  // (P_p, P_{p+k}), p = 0 … pairs − 1
  if (k < 1 || pairs < 2) {
    throw InvalidArgument(
        fmt::format("a table of {} rows cannot be held against itself {} rows "
                    "on; from 1 to {} will do",
                    rows.rows(), k, rows.rows() - 2));
  }
  // Weaker directions are rounding: a sinusoid's slow columns are that similar.
  Eigen::CompleteOrthogonalDecomposition<Matrix> fit;
  fit.setThreshold(kRounding);
  Residue fitted, held_out, unmoved;
  for (const int64_t half : {0, 1}) {
    const Matrix from = every_other(rows, half, pairs), to = every_other(rows, half + k, pairs + k);
    const Matrix other = every_other(rows, 1 - half, pairs);
    const Matrix target = every_other(rows, 1 - half + k, pairs + k);
    const Eigen::RowVectorXd mean = to.colwise().mean();
    fit.compute(from);
    // x·R = x·from⁺·to, by way of the smaller of from⁺ and R.
    const bool wide = from.rows() < from.cols();
    const Matrix map = fit.solve(wide ? Matrix(Matrix::Identity(from.rows(), from.rows())) : to);
    const auto moved = [&](const Matrix& x) {
      return wide ? times(times(x, map), to) : times(x, map);
    };
    add(moved(from), to, mean, fitted);
    add(moved(other), target, mean, held_out);
    add(other, target, mean, unmoved);
  }
  return {.fitted = fitted.r2(), .held_out = held_out.r2(), .unmoved = unmoved.r2()};
}

}  // namespace phasor
