// Matrices of double: a table's vectors, distances, what a heat map shows; and ranges of numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace infer {

/// Both ends included.
struct Range {
  double low = 0, high = 0;
};

struct Matrix {
  std::vector<double> values;  // [rows, columns], row-major
  int64_t rows = 0;
  int64_t columns = 0;

  double at(int64_t row, int64_t column) const { return values[row * columns + column]; }
  std::span<const double> row(int64_t i) const {
    return std::span(values).subspan(i * columns, columns);
  }
};

}  // namespace infer
