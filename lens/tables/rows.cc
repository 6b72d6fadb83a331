// Relations between the rows of a table: products, distances, the nearest two.

#include <algorithm>
#include <limits>
#include <numbers>

#include "lens/matrix.h"
#include "phasor/lens/table.h"

namespace phasor {
using namespace internal;

std::vector<double> row_matrix(std::span<const double> table, int64_t d_model, RowMeasure measure) {
  const auto rows = as_matrix(table, d_model);
  Matrix matrix(rows.rows(), rows.rows());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      matrix(i, j) = matrix(j, i) = measure == RowMeasure::kEuclidean
                                        ? (rows.row(i) - rows.row(j)).norm()
                                        : rows.row(i).dot(rows.row(j));
    }
  }
  if (measure == RowMeasure::kCosineDistance) {
    const Eigen::VectorXd squares = matrix.diagonal();
    for (int64_t i = 0; i < rows.rows(); ++i) {
      for (int64_t j = 0; j < rows.rows(); ++j) {
        const double norms = std::sqrt(squares(i) * squares(j));
        matrix(i, j) = norms > 0 ? 1 - matrix(i, j) / norms : 1;
      }
    }
  }
  return to_vector(matrix);
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
  const auto rows = as_matrix(table, d_model);
  if (rows.rows() < 2) throw InvalidArgument("a table of one row has no two rows to compare");
  RowPair nearest{.distance = std::numeric_limits<double>::infinity()};
  for (int64_t offset = 1; offset < rows.rows(); ++offset) {
    for (int64_t i = 0; i + offset < rows.rows(); ++i) {
      const double distance = (rows.row(i) - rows.row(i + offset)).norm();
      if (distance < nearest.distance) nearest = {i, offset, distance};
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

std::vector<double> clock_angles(std::span<const double> table, int64_t d_model,
                                 std::span<const ColumnPair> pairs) {
  std::vector<double> angles;
  for (int64_t p = 0; p < num_rows(table, d_model); ++p) {
    for (const ColumnPair& pair : pairs) {
      if (pair.cosine < 0) continue;
      const auto row = table.subspan(p * d_model, d_model);
      const double angle = std::atan2(row[pair.sine], row[pair.cosine]);
      angles.push_back(angle < 0 ? angle + 2 * std::numbers::pi : angle);
    }
  }
  return angles;
}

}  // namespace phasor
