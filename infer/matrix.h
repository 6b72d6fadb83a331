// Matrices of double: a table's vectors, distances, what a heat map shows; ranges of numbers, and
// their order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "files/matrix_file.h"

namespace infer {

/// Both ends included.
struct Range {
  double low = 0, high = 0;
};

using Matrix = phasor::internal::TableValues;

/// Indices from the largest number to the smallest.
inline std::vector<size_t> best_first(std::span<const float> numbers) {
  std::vector<size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return numbers[i]; });
  return order;
}

}  // namespace infer
