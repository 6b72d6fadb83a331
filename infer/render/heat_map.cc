// A matrix as text for a terminal.
#include "infer/render/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "infer/render/terminal.h"

namespace infer {
namespace {

constexpr std::array<std::string_view, 5> kShades = {" ", "░", "▒", "▓", "█"};

/// How a matrix is laid out in characters.
struct Grid {
  int label_width = 0;                        // 0: no labels
  int64_t block_rows = 1, block_columns = 1;  // a cell is the mean of so many
  bool wide = true;                           // a cell takes two columns
  bool paired = false;                        // a character shows two cells, one above the other
};

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

Grid grid_of(MatrixView matrix, const HeatMapOptions& options) {
  Grid grid;
  for (const std::string& label : options.row_labels) {
    grid.label_width = std::max(grid.label_width, display_width(label) + 1);
  }
  grid.label_width = std::min(grid.label_width, options.width / 3);
  const int64_t width = std::max(options.width, 20) - grid.label_width;
  grid.wide = matrix.columns * 2 <= width && matrix.rows <= options.max_lines;
  if (grid.wide) return grid;
  grid.paired = options.colours;
  grid.block_columns = divide_up(matrix.columns, width);
  grid.block_rows = divide_up(matrix.rows, (grid.paired ? 2 : 1) * int64_t{options.max_lines});
  if (matrix.rows != matrix.columns) return grid;
  // Square, and so shall it look: a character is about twice as high as wide.
  const int64_t high = grid.paired ? 1 : 2;
  grid.block_columns = std::max(grid.block_columns, divide_up(grid.block_rows, high));
  grid.block_rows = high * grid.block_columns;
  return grid;
}

/// Of the 256 colours that terminals have, those that come near to the maps' without ever stepping
/// back in lightness: the nearest ones to a map would.
int terminal_colour(ColourMap map, double share) {
  constexpr std::array<uint8_t, 10> kSequential = {53, 54, 25, 31, 37, 42, 113, 149, 185, 227};
  constexpr std::array<uint8_t, 15> kDiverging = {18,  25,  32,  74,  117, 153, 189, 255,
                                                  224, 217, 210, 203, 160, 124, 88};
  const std::span<const uint8_t> colours =
      map == ColourMap::kDiverging ? std::span<const uint8_t>(kDiverging) : kSequential;
  const auto i = static_cast<size_t>(share * static_cast<double>(colours.size()));
  return colours[std::min(i, colours.size() - 1)];
}

/// Where `value` lies in `range`, 0 … 1; 1/2 where the range is a point, and for what is no number.
double share_of(Range range, double value) {
  if (!(range.high > range.low) || !std::isfinite(value)) return 0.5;
  return std::clamp((value - range.low) / (range.high - range.low), 0.0, 1.0);
}

/// Colours and shades of cells.
class Painter {
 public:
  Painter(const HeatMapOptions& options, Range range) : options_(options), range_(range) {}

  std::string shade(double value) const {
    if (!std::isfinite(value)) return "·";
    const double step = share_of(range_, value) * static_cast<double>(kShades.size());
    return std::string(kShades[std::min(static_cast<size_t>(step), kShades.size() - 1)]);
  }
  int colour(double value) const { return terminal_colour(options_.map, share_of(range_, value)); }
  std::string cell(double value, const Grid& grid) const {
    const int times = grid.wide ? 2 : 1;
    if (options_.colours) return fmt::format("\033[48;5;{}m{:{}}", colour(value), "", times);
    return grid.wide ? shade(value) + shade(value) : shade(value);
  }
  std::string pair(double above, double below) const {
    return fmt::format("\033[38;5;{};48;5;{}m▀", colour(above), colour(below));
  }

 private:
  const HeatMapOptions& options_;
  Range range_;
};

/// The cells that are shown: the mean of each block's finite numbers; blocks at the end may be
/// smaller.
Matrix cells_of(MatrixView matrix, const Grid& grid) {
  Matrix means{.values = {},
               .rows = divide_up(matrix.rows, grid.block_rows),
               .columns = divide_up(matrix.columns, grid.block_columns)};
  means.values.resize(means.rows * means.columns);
  std::vector<double> counts(means.values.size());
  for (int64_t i = 0; i < matrix.rows; ++i) {
    for (int64_t j = 0; j < matrix.columns; ++j) {
      if (!std::isfinite(matrix.at(i, j))) continue;
      const int64_t block = i / grid.block_rows * means.columns + j / grid.block_columns;
      means.values[block] += matrix.at(i, j);
      ++counts[block];
    }
  }
  for (size_t i = 0; i < counts.size(); ++i) means.values[i] /= counts[i];  // 0 / 0: NaN
  return means;
}

Range shown_range(MatrixView cells, const HeatMapOptions& options) {
  return options.range.value_or(colour_range(options.map, cells.values));
}

}  // namespace

Range range_of(std::span<const double> values) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Range range{kInfinity, -kInfinity};
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    range = {std::min(range.low, value), std::max(range.high, value)};
  }
  return range.low <= range.high ? range : Range{};
}

Range colour_range(ColourMap map, std::span<const double> values) {
  const Range range = range_of(values);
  if (map == ColourMap::kSequential) return range;
  const double size = std::max(std::abs(range.low), std::abs(range.high));
  return {-size, size};
}

std::vector<std::string> heat_map(MatrixView matrix, const HeatMapOptions& options) {
  const Grid grid = grid_of(matrix, options);
  const Matrix cells = cells_of(matrix, grid);
  const Painter painter(options, shown_range(cells, options));
  const int64_t step = grid.paired ? 2 : 1;
  std::vector<std::string> lines;
  for (int64_t i = 0; i < cells.rows; i += step) {
    std::string line;
    if (grid.label_width > 0) {
      const std::string& label = options.row_labels[i * grid.block_rows];
      line = pad_left(cut_right(label, grid.label_width - 1), grid.label_width - 1) + " ";
    }
    for (int64_t j = 0; j < cells.columns; ++j) {
      const bool both = grid.paired && i + 1 < cells.rows;
      if (both) {
        line += painter.pair(cells.at(i, j), cells.at(i + 1, j));
      } else if (grid.paired) {  // the last of an odd number of rows: nothing below it
        line += fmt::format("\033[38;5;{};49m▀", painter.colour(cells.at(i, j)));
      } else {
        line += painter.cell(cells.at(i, j), grid);
      }
    }
    lines.push_back(line + (options.colours ? "\033[0m" : ""));
  }
  return lines;
}

std::string heat_map_key(MatrixView matrix, const HeatMapOptions& options) {
  constexpr int kColours = 15;
  const Grid grid = grid_of(matrix, options);
  const Range range = shown_range(cells_of(matrix, grid), options);
  const Painter painter(options, range);
  std::string ramp;
  const int steps = options.colours ? kColours : static_cast<int>(kShades.size());
  for (int i = 0; i < steps; ++i) {
    const double share = (i + 0.5) / steps;
    const Grid narrow{.wide = false};
    ramp += painter.cell(range.low + share * (range.high - range.low), narrow);
  }
  if (options.colours) ramp += "\033[0m";
  std::string key = fmt::format("{:.3g} {} {:.3g}", range.low, ramp, range.high);
  if (grid.block_rows * grid.block_columns > 1) {
    key += fmt::format(", a cell is the mean of {} × {}", grid.block_rows, grid.block_columns);
  }
  return key;
}

}  // namespace infer
