// Matrices of double: a table's vectors, distances, what a heat map shows; and ranges of numbers.
#pragma once

#include "files/matrix_file.h"

namespace infer {

/// Both ends included.
struct Range {
  double low = 0, high = 0;
};

using Matrix = phasor::internal::TableValues;

}  // namespace infer
