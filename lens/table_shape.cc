// The columns and the principal directions of a table.

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <complex>
#include <unsupported/Eigen/FFT>

#include "lens/matrix.h"
#include "phasor/lens/table.h"

namespace phasor {
using namespace internal;

namespace {

// XᵀX or XXᵀ, the smaller of both: they have the same eigenvalues σ² except for zeros.
Eigen::MatrixXd smaller_gram(const Matrix& x) {
  if (x.rows() < x.cols()) return x * x.transpose();
  return x.transpose() * x;
}

}  // namespace

Eigen::VectorXd internal::eigenvalues(const Eigen::MatrixXd& symmetric) {
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(symmetric, Eigen::EigenvaluesOnly)
      .eigenvalues();
}

std::vector<ColumnPeak> column_peaks(std::span<const double> table, int64_t d_model) {
  const Matrix rows = centered(table, d_model);
  const int64_t length = rows.rows();
  if (length == 1) return std::vector<ColumnPeak>(d_model);  // Eigen's FFT cannot
  Eigen::FFT<double> fft;
  std::vector<std::complex<double>> spectrum;
  std::vector<ColumnPeak> peaks;
  for (int64_t c = 0; c < d_model; ++c) {
    const Eigen::VectorXd column = rows.col(c);
    fft.fwd(spectrum, std::vector<double>(column.begin(), column.end()));
    ColumnPeak peak;
    double strongest = 0, energy = 0;
    for (int64_t f = 1; f <= length / 2; ++f) {
      const bool mirrored = 2 * f < length;  // its conjugate at length − f has the same energy
      const double power = (mirrored ? 2 : 1) * std::norm(spectrum[f]);
      energy += power;
      if (power > strongest) {
        strongest = power;
        peak.cycles = f;
      }
    }
    if (energy > 0) peak.share = strongest / energy;
    peaks.push_back(peak);
  }
  return peaks;
}

double stable_rank(std::span<const double> table, int64_t d_model) {
  const Eigen::MatrixXd gram = smaller_gram(as_matrix(table, d_model));
  const double strongest = eigenvalues(gram)(gram.rows() - 1);
  return strongest > 0 ? gram.trace() / strongest : 0;
}

PlaneMap principal_plane(std::span<const double> table, int64_t d_model) {
  const Matrix rows = centered(table, d_model);
  const Eigen::MatrixXd gram = smaller_gram(rows);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(gram);
  Matrix points = Matrix::Zero(rows.rows(), 2);
  PlaneMap map;
  for (int64_t axis = 0; axis < std::min<int64_t>(2, gram.rows()); ++axis) {
    const int64_t which = gram.rows() - 1 - axis;  // eigenvalues ascend
    const double variance = std::max(0.0, solver.eigenvalues()(which));
    const Eigen::VectorXd vector = solver.eigenvectors().col(which);
    auto coordinates = points.col(axis);
    if (rows.rows() < rows.cols()) {
      coordinates = std::sqrt(variance) * vector;
    } else {
      coordinates = rows * vector;
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
