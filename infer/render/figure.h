// Figures as SVG documents, for papers and pages: charts, heat maps, paths and clocks.
//
// Each function returns a whole document that needs nothing else: no fonts, no network, no script.
// The same input gives the same bytes. Colours can be told apart by colour-blind readers, and turn
// with the reader's preference for light or dark (prefers-color-scheme); what is not on a screen
// is light. Numbers that are not finite leave a gap.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "infer/render/colour_map.h"

namespace infer {

/// What stands round a picture; empty texts take no room.
struct FigureText {
  std::string title;
  std::string x_label = {};
  std::string y_label = {};
};

/// Points joined by lines. `x` and `y` are of one length.
struct Series {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;
};

/// Lines in one frame, with a legend where there are several.
std::string line_chart(const FigureText& text, const std::vector<Series>& series);

struct HeatMapFigure {
  FigureText text;
  ColourMap map = ColourMap::kSequential;
  std::string value_label = {};                 // what a colour means
  std::optional<Range> range = {};              // what the ends of the colours stand for
  double first_row = 0, first_column = 0;       // where the axes begin to count
  std::vector<std::string> row_labels = {};     // [rows] or none, in place of numbers
  std::vector<std::string> column_labels = {};  // [columns] or none
};

/// Row 0 at the top. Up to 1024 cells are rectangles, each with its number as a tooltip; more are
/// an image of a pixel a cell, and beyond 1024 rows or columns of the means of blocks.
std::string heat_map_figure(MatrixView matrix, const HeatMapFigure& figure);

/// Bars of parts on top of each other: bar i has part k's values[k][i], upwards where positive.
struct Part {
  std::string name;
  std::vector<double> values;  // [bars]
};
std::string stacked_bars(const FigureText& text, const std::vector<std::string>& bars,
                         const std::vector<Part>& parts);

/// Points in the plane, joined in their order, coloured from first to last; both axes have one
/// scale. Some points carry their number, counted from `first`.
std::string scatter_path(const FigureText& text, const std::vector<double>& x,
                         const std::vector<double>& y, double first = 0);

/// A row of clocks for each label: clock k of row p has the hand (hands[p, 2k], hands[p, 2k + 1]),
/// rightwards and upwards, so that the pair (sin θ, cos θ) shows θ clockwise from twelve. The
/// longest hand of all reaches the rim.
std::string clock_hands(const FigureText& text, MatrixView hands,
                        const std::vector<std::string>& row_labels,
                        const std::vector<std::string>& column_labels);

}  // namespace infer
