// Measures of a table's Gram matrix.

#include "phasor/lens/table.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <vector>

#include "lens/rows.h"

namespace phasor {
using namespace internal;

namespace {

// M = P Pᵀ, [T, T].
std::vector<double> gram(std::span<const double> table, int64_t d_model) {
  return row_matrix(table, d_model, RowMeasure::kDotProduct);
}

// W, the Gram matrix with rows shifted and scaled to minimum 0 and sum 1, except for the main
// diagonal, which is 0: [T, T].
std::vector<double> likeness(std::span<const double> table, int64_t d_model) {
  const int64_t rows = num_rows(table, d_model);
  std::vector<double> weights = gram(table, d_model);
  double longest = 0;  // of the rows' squares
  for (int64_t i = 0; i < rows; ++i) longest = std::max(longest, weights[i * rows + i]);
  for (int64_t i = 0; i < rows; ++i) {
    const std::span row(&weights[i * rows], rows);
    // Each of two products may be off by 2ε·‖P_i‖·‖P_j‖.
    const double rounding = 4 * kRounding * std::sqrt(row[i] * longest);
    row[i] = std::numeric_limits<double>::infinity();
    const double lowest = *std::min_element(row.begin(), row.end());
    row[i] = lowest;
    for (double& w : row) w -= lowest;
    const double sum = std::accumulate(row.begin(), row.end(), 0.0);
    const bool varies = sum > rounding * static_cast<double>(rows - 1);
    for (double& w : row) w = varies ? w / sum : 1.0 / static_cast<double>(rows - 1);
    row[i] = 0;
  }
  return weights;
}

}  // namespace

double toeplitz_r2(std::span<const double> table, int64_t d_model) {
  const std::vector<double> m = gram(table, d_model);
  const int64_t rows = num_rows(table, d_model);
  const auto offset = [&](int64_t i) { return i % rows - i / rows; };
  std::vector<double> diagonal_sums(2 * rows - 1);
  double sum = 0;
  for (int64_t i = 0; i < rows * rows; ++i) {
    if (offset(i) == 0) continue;
    diagonal_sums[offset(i) + rows - 1] += m[i];
    sum += m[i];
  }
  const double mean = sum / static_cast<double>(rows * (rows - 1));
  double unexplained = 0, total = 0, rounding = 0;
  for (int64_t i = 0; i < rows * rows; ++i) {
    if (offset(i) == 0) continue;
    const auto length = static_cast<double>(rows - std::abs(offset(i)));
    const double residue = m[i] - diagonal_sums[offset(i) + rows - 1] / length;
    unexplained += residue * residue;
    total += (m[i] - mean) * (m[i] - mean);
    rounding += 4 * kRounding * kRounding * m[i / rows * (rows + 1)] * m[i % rows * (rows + 1)];
  }
  return total > rounding ? 1 - unexplained / total : 1;
}

double neighbour_likeness(std::span<const double> table, int64_t d_model) {
  const std::vector<double> w = likeness(table, d_model);
  const int64_t rows = num_rows(table, d_model);
  double sum = 0;
  for (int64_t i = 0; i < rows * rows; ++i) {
    sum += std::ldexp(w[i], 1 - static_cast<int>(std::abs(i % rows - i / rows)));
  }
  return sum / static_cast<double>(rows);
}

double mirror_likeness(std::span<const double> table, int64_t d_model) {
  const std::vector<double> w = likeness(table, d_model);
  const int64_t rows = num_rows(table, d_model);
  double differences = 0, total = 0;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 1; k <= std::min(i, rows - 1 - i); ++k) {
      const double before = w[i * rows + i - k], after = w[i * rows + i + k];
      differences += std::abs(before - after);
      total += before + after;
    }
  }
  return total > 0 ? 1 - differences / total : 1;
}

}  // namespace phasor
