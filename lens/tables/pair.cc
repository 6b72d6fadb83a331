// The similarity of two tables with the same rows, up to rotation, scale and shift.

#include <fmt/format.h>

#include <algorithm>

#include "lens/matrix.h"
#include "phasor/lens/table.h"

namespace phasor {
using namespace internal;

namespace {

struct Centered {
  Matrix a, b;
};

Centered centered_pair(std::span<const double> a, int64_t a_width, std::span<const double> b,
                       int64_t b_width) {
  const int64_t rows = num_rows(a, a_width), other = num_rows(b, b_width);
  if (rows != other) {
    throw InvalidArgument(fmt::format(
        "cannot compare a table of {} rows with one of {}; take as many of both", rows, other));
  }
  return {centered(a, a_width), centered(b, b_width)};
}

}  // namespace

double linear_cka(std::span<const double> a, int64_t a_width, std::span<const double> b,
                  int64_t b_width) {
  const Centered x = centered_pair(a, a_width, b, b_width);
  const double own = transposed_times(x.a, x.a).norm() * transposed_times(x.b, x.b).norm();
  return own > 0 ? transposed_times(x.b, x.a).squaredNorm() / own : 0;
}

double procrustes_distance(std::span<const double> a, int64_t a_width, std::span<const double> b,
                           int64_t b_width) {
  const Centered x = centered_pair(a, a_width, b, b_width);
  const double norms = x.a.norm() * x.b.norm();
  if (!(norms > 0)) return 1;
  // The eigenvalues of [0 Mᵀ; M 0] are M's singular values, their negatives, and zeros. Those of
  // MᵀM would be exact to the root of the rounding only.
  const int64_t size = a_width + b_width;
  Matrix both = Matrix::Zero(size, size);
  both.bottomLeftCorner(b_width, a_width) = transposed_times(x.b, x.a) / norms;
  const double overlap = eigenvalues(both).cwiseAbs().sum() / 2;
  return std::max(0.0, 1 - overlap * overlap);
}

}  // namespace phasor
