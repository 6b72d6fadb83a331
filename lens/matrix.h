// Rows of width d_model as an Eigen matrix.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <span>
#include <vector>

#include "lens/rows.h"

namespace phasor::internal {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Borrows x. Throws InvalidArgument if it is empty or not a whole number of rows.
inline Eigen::Map<const Matrix> as_matrix(std::span<const double> x, int64_t d_model) {
  return {x.data(), num_rows(x, d_model), d_model};
}

/// The rows without their mean; a column x that is constant up to rounding, ‖x − x̄‖ ≤ 2^-23·‖x‖,
/// becomes exactly 0.
inline Matrix centered(std::span<const double> x, int64_t d_model) {
  const auto rows = as_matrix(x, d_model);
  Matrix rest = rows.rowwise() - rows.colwise().mean();
  for (int64_t c = 0; c < d_model; ++c) {
    if (rest.col(c).norm() <= kRounding * rows.col(c).norm()) rest.col(c).setZero();
  }
  return rest;
}

/// A matrix, or columns of one.
using MatrixRef = Eigen::Ref<const Matrix, 0, Eigen::OuterStride<>>;

/// a·b, a·bᵀ and aᵀ·b, compiled once: Eigen compiles a product anew for each type of expression.
Matrix times(const MatrixRef& a, const MatrixRef& b);
Matrix times_transposed(const MatrixRef& a, const MatrixRef& b);
Matrix transposed_times(const MatrixRef& a, const MatrixRef& b);

/// Eigenvalues, ascending, and unit eigenvectors as columns.
struct Spectrum {
  Eigen::VectorXd values;
  Matrix vectors;
};
/// Of a symmetric matrix, whose lower half is read.
Spectrum spectrum(const Matrix& symmetric);
Eigen::VectorXd eigenvalues(const Matrix& symmetric);

inline std::vector<double> to_vector(const Matrix& m) { return {m.data(), m.data() + m.size()}; }

}  // namespace phasor::internal
