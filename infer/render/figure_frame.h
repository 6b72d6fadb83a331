// The frame of a chart: room for its texts, axes with round ticks, and a legend.
#pragma once

#include <string>
#include <vector>

#include "infer/render/figure.h"
#include "infer/render/svg.h"

namespace infer {

/// Numbers along an axis and where they are marked: multiples of 1, 2 or 5 times a power of ten.
struct Axis {
  double low = 0, high = 1;
  double step = 1;  // between ticks

  std::vector<double> ticks() const;     // within low … high
  std::string label(double tick) const;  // with as many decimals as the step needs
};

/// An axis over low … high with at most `max_ticks` ticks or so; `rounded` widens it to ticks.
Axis make_axis(double low, double high, int max_ticks, bool rounded);

/// The rectangle that holds the picture, within a document.
struct Area {
  double left = 0, top = 0, width = 0, height = 0;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

/// A mark at a place of an axis.
struct Tick {
  double at = 0;  // in the document
  std::string label;
};

/// Maps numbers onto an area; y grows upwards.
struct Scale {
  Area area;
  Axis x, y;

  double x_at(double value) const { return area.left + share(x, value) * area.width; }
  double y_at(double value) const { return area.bottom() - share(y, value) * area.height; }
  Point at(double x_value, double y_value) const { return {x_at(x_value), y_at(y_value)}; }

 private:
  static double share(const Axis& axis, double value) {
    return (value - axis.low) / (axis.high - axis.low);
  }
};

/// Room left of, above and below a picture for its texts and tick labels.
Area area_for(const FigureText& text, double width, double height, double y_labels_width);
/// How wide a document is round an area with something `beside` it on its right.
double document_width(const FigureText& text, const Area& area, double beside);
double document_height(const FigureText& text, const Area& area);

void draw_texts(Svg& svg, const FigureText& text, const Area& area);
/// Ticks and labels along the bottom and the left.
void draw_x_ticks(Svg& svg, const Area& area, const std::vector<Tick>& ticks, bool grid);
void draw_y_ticks(Svg& svg, const Area& area, const std::vector<Tick>& ticks, bool grid);
void draw_box(Svg& svg, const Area& area);
void draw_axes(Svg& svg, const Scale& scale);

/// A name for each colour, from the top right of the area down.
double legend_width(const std::vector<std::string>& names);
void draw_legend(Svg& svg, const Area& area, const std::vector<std::string>& names, bool lines);

/// Ticks for `count` things side by side from `from` on, each `size` wide: every one that there is
/// room for.
std::vector<Tick> label_ticks(const std::vector<std::string>& labels, double from, double size,
                              bool vertical);
double widest(const std::vector<Tick>& ticks);

}  // namespace infer
