// A matrix that somebody else holds, as heat maps take it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "infer/range.h"

namespace infer {

struct MatrixView {
  std::span<const double> values;  // [rows, columns], row-major
  int64_t rows = 0;
  int64_t columns = 0;

  double at(int64_t row, int64_t column) const { return values[row * columns + column]; }
};

/// Matrix [rows, columns].
struct Matrix {
  std::vector<double> values;
  int64_t rows = 0;
  int64_t columns = 0;

  operator MatrixView() const { return {values, rows, columns}; }
};

/// The mean of each block of `block_rows` × `block_columns` cells; blocks at the end may be
/// smaller. Cells that are no finite number are left out of their block's mean.
Matrix block_means(MatrixView matrix, int64_t block_rows, int64_t block_columns);

/// The least and greatest finite value; 0 and 0 where there is none.
Range range_of(std::span<const double> values);

}  // namespace infer
