// A matrix as text for a terminal: coloured cells, or shades ( ░▒▓█) where there are no colours.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "infer/matrix.h"
#include "infer/range.h"

namespace infer {

/// Maps that colour-blind readers can follow.
enum class ColourMap {
  kSequential,  // like viridis: dark blue to yellow, ever lighter
  kDiverging    // blue, white, red, for numbers on both sides of zero
};

/// The least and greatest finite value; 0 and 0 where there is none.
Range range_of(std::span<const double> values);
/// What the ends of a map stand for: the same, and for kDiverging as far below zero as above.
Range colour_range(ColourMap map, std::span<const double> values);

struct HeatMapOptions {
  int width = 80;        // columns the lines may take, labels included; at least 20
  int max_lines = 32;    // lines that the cells may take
  bool colours = false;  // Output::colours()
  ColourMap map = ColourMap::kSequential;
  std::optional<Range> range = {};           // empty: colour_range() of the cells that are shown
  std::vector<std::string> row_labels = {};  // [rows] or none; a line shows its first row's
};

/// Lines of the same width. A matrix that fits has a cell of two columns and one line for each of
/// its cells; in a larger one cells are means of blocks, and with colours a character is two of
/// them (▀). Square matrices stay square.
std::vector<std::string> heat_map(MatrixView matrix, const HeatMapOptions& options);

/// How the lines above are to be read: "-1  ░▒▓█ 1", and "a cell is the mean of 7 × 7" where they
/// show means.
std::string heat_map_key(MatrixView matrix, const HeatMapOptions& options);

}  // namespace infer
