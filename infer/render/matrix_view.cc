// Block means and ranges of matrices that are shown.
#include "infer/render/matrix_view.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace infer {

Matrix block_means(MatrixView matrix, int64_t block_rows, int64_t block_columns) {
  Matrix means{.values = {},
               .rows = (matrix.rows + block_rows - 1) / block_rows,
               .columns = (matrix.columns + block_columns - 1) / block_columns};
  means.values.resize(means.rows * means.columns);
  std::vector<int64_t> counts(means.values.size());
  for (int64_t i = 0; i < matrix.rows; ++i) {
    for (int64_t j = 0; j < matrix.columns; ++j) {
      if (!std::isfinite(matrix.at(i, j))) continue;
      const int64_t block = i / block_rows * means.columns + j / block_columns;
      means.values[block] += matrix.at(i, j);
      ++counts[block];
    }
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    means.values[i] = counts[i] > 0 ? means.values[i] / static_cast<double>(counts[i])
                                    : std::numeric_limits<double>::quiet_NaN();
  }
  return means;
}

Range range_of(std::span<const double> values) {
  Range range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
  }
  return range.low <= range.high ? range : Range{};
}

}  // namespace infer
