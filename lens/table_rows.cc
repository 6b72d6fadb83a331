// The rows of a table beside each other: products, distances, the nearest two.

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "lens/rows.h"
#include "phasor/lens/table.h"

namespace phasor {
namespace {

double distance(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

double compare(RowMeasure measure, const double* a, const double* b, int64_t n) {
  if (measure == RowMeasure::kEuclidean) return distance(a, b, n);
  if (measure == RowMeasure::kDotProduct) return dot(a, b, n);
  const double norms = std::sqrt(dot(a, a, n) * dot(b, b, n));
  return norms > 0 ? 1 - dot(a, b, n) / norms : 1.0;
}

}  // namespace

std::vector<double> row_matrix(std::span<const double> table, int64_t d_model, RowMeasure measure) {
  const int64_t rows = num_rows(table, d_model);
  std::vector<double> matrix(rows * rows);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      matrix[i * rows + j] = matrix[j * rows + i] =
          compare(measure, &table[i * d_model], &table[j * d_model], d_model);
    }
  }
  return matrix;
}

std::vector<double> dot_product_by_offset(std::span<const double> table, int64_t d_model) {
  const int64_t rows = num_rows(table, d_model);
  std::vector<double> means(rows);
  for (int64_t offset = 0; offset < rows; ++offset) {
    for (int64_t i = 0; i + offset < rows; ++i) {
      means[offset] += dot(&table[i * d_model], &table[(i + offset) * d_model], d_model);
    }
    means[offset] /= static_cast<double>(rows - offset);
  }
  return means;
}

std::optional<int64_t> first_rise(std::span<const double> table, int64_t d_model) {
  const std::vector<double> products = dot_product_by_offset(table, d_model);
  for (int64_t offset = 1; offset < std::ssize(products); ++offset) {
    if (products[offset] > products[offset - 1]) return offset;
  }
  return std::nullopt;
}

RowPair nearest_rows(std::span<const double> table, int64_t d_model) {
  const int64_t rows = num_rows(table, d_model);
  if (rows < 2) throw InvalidArgument("a table of one row has no two rows to compare");
  RowPair nearest{.distance = std::numeric_limits<double>::infinity()};
  for (int64_t offset = 1; offset < rows; ++offset) {
    for (int64_t i = 0; i + offset < rows; ++i) {
      const double d = distance(&table[i * d_model], &table[(i + offset) * d_model], d_model);
      if (d < nearest.distance) nearest = {.row = i, .offset = offset, .distance = d};
    }
  }
  return nearest;
}

Monotonicity local_monotonicity(std::span<const double> table, int64_t d_model,
                                int64_t max_offset) {
  const int64_t rows = num_rows(table, d_model);
  Monotonicity counts;
  const auto product = [&](int64_t i, int64_t j) {
    return dot(&table[i * d_model], &table[j * d_model], d_model);
  };
  for (int64_t i = 0; i < rows; ++i) {
    for (const int64_t side : {-1, 1}) {
      const int64_t reach = std::min(side < 0 ? i : rows - 1 - i, max_offset);
      for (int64_t offset = 1; offset < reach; ++offset) {
        ++counts.steps;
        if (product(i, i + side * (offset + 1)) > product(i, i + side * offset)) {
          ++counts.violations;
        }
      }
    }
  }
  return counts;
}

}  // namespace phasor
