// The columns and the principal directions of a table.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lens/matrix.h"
#include "phasor/lens/table.h"

namespace phasor {
using namespace internal;

namespace {

// XᵀX or XXᵀ, the smaller of both: they have the same eigenvalues σ² except for zeros.
Matrix smaller_gram(const Matrix& x) {
  return x.rows() < x.cols() ? times_transposed(x, x) : transposed_times(x, x);
}

}  // namespace

std::vector<ColumnPeak> column_peaks(std::span<const double> table, int64_t d_model) {
  const Matrix rows = centered(table, d_model);
  const int64_t length = rows.rows(), frequencies = length / 2;
  // The spectra of all columns as two products: tables are short.
  Matrix cosines(frequencies, length), sines(frequencies, length);
  for (int64_t f = 0; f < frequencies; ++f) {
    for (int64_t t = 0; t < length; ++t) {
      const double turns = static_cast<double>((f + 1) * t % length) / static_cast<double>(length);
      cosines(f, t) = std::cos(2 * std::numbers::pi * turns);
      sines(f, t) = std::sin(2 * std::numbers::pi * turns);
    }
  }
  Matrix power = times(cosines, rows).cwiseAbs2() + times(sines, rows).cwiseAbs2();
  // Below length / 2, the conjugate at length − f has the same energy.
  power.topRows((length - 1) / 2) *= 2;
  std::vector<ColumnPeak> peaks(d_model);
  for (int64_t c = 0; frequencies > 0 && c < d_model; ++c) {
    Eigen::Index strongest = 0;
    const double most = power.col(c).maxCoeff(&strongest);
    if (!(most > 0)) continue;
    peaks[c] = {.cycles = strongest + 1,
                .share = most / power.col(c).sum(),
                .variance = rows.col(c).squaredNorm() / static_cast<double>(length)};
  }
  return peaks;
}

double stable_rank(std::span<const double> table, int64_t d_model) {
  const Matrix gram = smaller_gram(centered(table, d_model));
  const double strongest = eigenvalues(gram)(gram.rows() - 1);
  return strongest > 0 ? gram.trace() / strongest : 0;
}

PlaneMap principal_plane(std::span<const double> table, int64_t d_model) {
  const Matrix rows = centered(table, d_model);
  const Matrix gram = smaller_gram(rows);
  const Spectrum axes = spectrum(gram);
  Matrix points = Matrix::Zero(rows.rows(), 2);
  PlaneMap map;
  for (int64_t axis = 0; axis < std::min<int64_t>(2, gram.rows()); ++axis) {
    const int64_t which = gram.rows() - 1 - axis;  // eigenvalues ascend
    const double variance = std::max(0.0, axes.values(which));
    const Matrix vector = axes.vectors.col(which);
    auto coordinates = points.col(axis);
    if (rows.rows() < rows.cols()) {
      coordinates = std::sqrt(variance) * vector;
    } else {
      coordinates = times(rows, vector);
    }
    const double far = coordinates.cwiseAbs().maxCoeff();
    for (const double x : coordinates) {
      if (std::abs(x) < 1e-6 * far) continue;
      if (x < 0) coordinates *= -1;
      break;
    }
    if (gram.trace() > 0) map.share[axis] = variance / gram.trace();
  }
  map.points = to_vector(points);
  return map;
}

}  // namespace phasor
