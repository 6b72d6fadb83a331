// A matrix in shades ( ░▒▓█), for a terminal.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "infer/matrix.h"

namespace infer {

/// What the lightest and the darkest shade stand for.
using RangeOf = Range (*)(std::span<const double> cells);
/// As far below zero as above, up to the largest finite number.
Range symmetric_range(std::span<const double> cells);

/// Up to 32 lines for a terminal of `width` columns, and a key: "-1  ░▒▓█ 1". Each number takes two
/// columns of a line; in a matrix that is too large a column is the mean of a block, and the key
/// says so. A line has the label of its first row, if there are labels.
/// Columns of different phase, which is their number modulo `phases`, have no mean in common.
std::string heat_map(const Matrix& matrix, const std::vector<std::string>& row_labels, int width,
                     RangeOf range_of, int64_t phases = 1);

}  // namespace infer
