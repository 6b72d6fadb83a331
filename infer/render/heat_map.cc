#include "infer/render/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "infer/cli/terminal.h"

namespace infer {
namespace {

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::string_view shade(Range range, double value) {
  constexpr std::array<std::string_view, 5> kShades = {" ", "░", "▒", "▓", "█"};
  if (!std::isfinite(value)) return "·";
  if (!(range.high > range.low)) return kShades[2];
  const double share = std::clamp((value - range.low) / (range.high - range.low), 0.0, 1.0);
  return kShades[std::min<size_t>(static_cast<size_t>(share * 5), 4)];
}

/// The mean of each block's finite numbers; blocks at the end may be smaller. A block has columns
/// of one phase.
Matrix block_means(const Matrix& matrix, int64_t block_rows, int64_t block_columns,
                   int64_t phases) {
  const int64_t span = block_columns * phases;  // of blocks that begin side by side
  Matrix means{.values = {},
               .rows = divide_up(matrix.rows, block_rows),
               .columns = matrix.columns / span * phases + std::min(matrix.columns % span, phases)};
  means.values.resize(means.rows * means.columns);
  std::vector<double> counts(means.values.size());
  for (int64_t i = 0; i < matrix.rows; ++i) {
    for (int64_t j = 0; j < matrix.columns; ++j) {
      if (!std::isfinite(matrix.at(i, j))) continue;
      const int64_t block = i / block_rows * means.columns + j / span * phases + j % phases;
      means.values[block] += matrix.at(i, j);
      ++counts[block];
    }
  }
  for (size_t i = 0; i < counts.size(); ++i) means.values[i] /= counts[i];  // 0 / 0: NaN
  return means;
}

}  // namespace

Range symmetric_range(std::span<const double> cells) {
  double size = 0;
  for (const double value : cells) {
    if (std::isfinite(value)) size = std::max(size, std::abs(value));
  }
  return {-size, size};
}

std::string heat_map(const Matrix& matrix, const std::vector<std::string>& row_labels, int width,
                     RangeOf range_of, int64_t phases) {
  constexpr int64_t kMostLines = 32;
  const int room = std::clamp(width - 2, 20, 98);
  int label_width = 0;
  for (const std::string& label : row_labels) {
    label_width = std::max(label_width, display_width(label) + 1);
  }
  label_width = std::min(label_width, room / 3);
  const bool fits = matrix.columns * 2 <= room - label_width && matrix.rows <= kMostLines;
  int64_t block_rows = 1, block_columns = 1;
  if (!fits) {
    block_columns = divide_up(matrix.columns, (room - label_width) / phases * phases);
    block_rows = divide_up(matrix.rows, kMostLines);
    if (matrix.rows == matrix.columns) {  // it shall look square: characters are twice as high
      block_columns = std::max(block_columns, divide_up(block_rows, 2));
      block_rows = 2 * block_columns;
    }
  }
  const Matrix cells = block_means(matrix, block_rows, block_columns, phases);
  const Range range = range_of(cells.values);
  std::string text;
  for (int64_t i = 0; i < cells.rows; ++i) {
    std::string line = "  ";
    if (label_width > 0) {
      const std::string label = cut_right(row_labels[i * block_rows], label_width - 1);
      line += pad_left(label, label_width - 1) + " ";
    }
    for (const double value : cells.row(i)) {
      for (int times = fits ? 2 : 1; times > 0; --times) line += shade(range, value);
    }
    text += trimmed(line);
  }
  text += fmt::format("  {:.3g} ", range.low);
  for (const double share : {0.1, 0.3, 0.5, 0.7, 0.9}) {
    text += shade(range, range.low + share * (range.high - range.low));
  }
  text += fmt::format(" {:.3g}", range.high);
  if (block_rows * block_columns > 1) {
    text += fmt::format(", a cell is the mean of {} × {}{}", block_rows, block_columns,
                        block_columns > 1 && phases > 1 ? ", sines apart from cosines" : "");
  }
  return text + "\n";
}

}  // namespace infer
