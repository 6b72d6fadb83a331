#include "lens/matrix.h"

#include <Eigen/Eigenvalues>

namespace phasor::internal {

Matrix times(const MatrixRef& a, const MatrixRef& b) { return a * b; }

Matrix times_transposed(const MatrixRef& a, const MatrixRef& b) { return a * b.transpose(); }

Matrix transposed_times(const MatrixRef& a, const MatrixRef& b) { return a.transpose() * b; }

Spectrum spectrum(const Matrix& symmetric) {
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(symmetric);
  return {solver.eigenvalues(), solver.eigenvectors()};
}

Eigen::VectorXd eigenvalues(const Matrix& symmetric) {
  return Eigen::SelfAdjointEigenSolver<Matrix>(symmetric, Eigen::EigenvaluesOnly).eigenvalues();
}

}  // namespace phasor::internal
