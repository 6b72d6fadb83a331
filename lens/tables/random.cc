// Random tables to compare a table with: of independent numbers, and of the same autocorrelation.

#include <random>

#include "lens/matrix.h"
#include "phasor/lens/table.h"

namespace phasor {
using namespace internal;

namespace {

/// C's symmetric root: unlike a factor of single eigenvectors, it does not jump where eigenvalues
/// meet.
Matrix root_of_covariance(std::span<const double> products) {
  const auto rows = std::ssize(products);
  Matrix toeplitz(rows, rows);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < rows; ++j) toeplitz(i, j) = products[std::abs(i - j)];
  }
  const Spectrum axes = spectrum(toeplitz);
  const Eigen::VectorXd positive = axes.values.cwiseMax(0);
  const double sum = positive.sum();
  const double scale = sum > 0 ? toeplitz.trace() / sum : 0;
  const Matrix scaled = axes.vectors * (scale * positive).cwiseSqrt().asDiagonal();
  return times_transposed(scaled, axes.vectors);
}

}  // namespace

std::vector<double> uniform_table(int64_t rows, int64_t d_model) {
  std::mt19937_64 random(1);
  std::vector<double> values(rows * d_model);
  for (double& value : values) value = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
  return values;
}

std::vector<std::vector<double>> stationary_tables(std::span<const double> table, int64_t d_model,
                                                   int64_t count, uint64_t seed) {
  const Matrix root = root_of_covariance(dot_product_by_offset(table, d_model)) /
                      std::sqrt(static_cast<double>(d_model));
  std::mt19937_64 random(seed);
  Matrix drawn(root.rows(), d_model);
  std::vector<std::vector<double>> tables;
  for (int64_t i = 0; i < count; ++i) {
    for (double& value : drawn.reshaped<Eigen::RowMajor>()) value = draw_normal(random);
    tables.push_back(to_vector(times(root, drawn)));
  }
  return tables;
}

}  // namespace phasor
