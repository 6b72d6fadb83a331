// Figures made of lines: charts and paths in the plane.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "infer/render/figure.h"
#include "infer/render/figure_frame.h"

namespace infer {
namespace {

constexpr double kWidth = 520, kHeight = 300;

double y_labels_width(const Axis& axis) {
  double width = 0;
  for (const double tick : axis.ticks()) width = std::max(width, text_width(axis.label(tick)));
  return width;
}

/// The colour of point i of n on its way through the sequential map; without its ends, one
/// of which white paper swallows and the other a dark page.
std::string path_colour(size_t i, size_t n) {
  const double share = n > 1 ? static_cast<double>(i) / static_cast<double>(n - 1) : 0;
  return hex(colour_at(ColourMap::kSequential, 0.2 + 0.65 * share));
}

/// Of n points in a row, every how many-th carries its number: round steps, about eight in all.
size_t number_every(size_t n) {
  if (n <= 12) return 1;
  const double step = make_axis(0, static_cast<double>(n), 8, false).step;
  return std::max<size_t>(static_cast<size_t>(step), 1);
}

}  // namespace

std::string line_chart(const FigureText& text, const std::vector<Series>& series) {
  std::vector<double> all_x, all_y;
  std::vector<std::string> names;
  for (const Series& line : series) {
    all_x.insert(all_x.end(), line.x.begin(), line.x.end());
    all_y.insert(all_y.end(), line.y.begin(), line.y.end());
    names.push_back(line.name);
  }
  if (names.size() < 2) names.clear();
  const Range x = range_of(all_x), y = range_of(all_y);
  const Axis y_axis = make_axis(y.low, y.high, 6, true);
  const double height =
      std::max(kHeight, 18.0 * static_cast<double>(names.size()));  // the legend's
  const Area area = area_for(text, kWidth, height, y_labels_width(y_axis));
  const Scale scale{area, make_axis(x.low, x.high, 8, false), y_axis};

  Svg svg(document_width(text, area, legend_width(names)), document_height(text, area), text.title);
  draw_axes(svg, scale);
  for (size_t i = 0; i < series.size(); ++i) {
    std::vector<Point> points;
    for (size_t k = 0; k < series[i].x.size(); ++k) {
      points.push_back(scale.at(series[i].x[k], series[i].y[k]));
    }
    svg.path(points, fmt::format("class=\"{}\"", line_class(i)), series[i].name);
  }
  draw_legend(svg, area, names, true);
  draw_texts(svg, text, area);
  return svg.document();
}

std::string scatter_path(const FigureText& text, const std::vector<double>& x,
                         const std::vector<double>& y, double first) {
  constexpr double kSide = 420;
  const Range x_range = range_of(x), y_range = range_of(y);
  Axis x_axis = make_axis(x_range.low, x_range.high, 7, true);
  Axis y_axis = make_axis(y_range.low, y_range.high, 7, true);
  // One scale for both: the longer axis fills the side.
  const double longest = std::max(x_axis.high - x_axis.low, y_axis.high - y_axis.low);
  x_axis.step = y_axis.step = std::max(x_axis.step, y_axis.step);
  const double width = std::max((x_axis.high - x_axis.low) / longest, 0.25) * kSide;
  const double height = std::max((y_axis.high - y_axis.low) / longest, 0.25) * kSide;
  const auto stretch = [&](Axis& axis, double size) {
    const double room = size / kSide * longest - (axis.high - axis.low);
    axis.low -= room / 2;
    axis.high += room / 2;
  };
  stretch(x_axis, width);
  stretch(y_axis, height);
  const Area area = area_for(text, width, height, y_labels_width(y_axis));
  const Scale scale{area, x_axis, y_axis};

  Svg svg(document_width(text, area, 0), document_height(text, area), text.title);
  draw_axes(svg, scale);
  for (size_t i = 1; i < x.size(); ++i) {
    svg.path(
        {scale.at(x[i - 1], y[i - 1]), scale.at(x[i], y[i])},
        fmt::format("fill=\"none\" stroke-width=\"1.5\" stroke=\"{}\"", path_colour(i, x.size())));
  }
  const size_t every = number_every(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
    const std::string number = fmt::format("{:g}", first + static_cast<double>(i));
    const Point at = scale.at(x[i], y[i]);
    svg.circle(at, i % every == 0 ? 3.5 : 2, fmt::format("fill=\"{}\"", path_colour(i, x.size())),
               fmt::format("{}: {:.6g}, {:.6g}", number, x[i], y[i]));
    if (i % every == 0) svg.text({at.x + 6, at.y - 5}, number);
  }
  draw_texts(svg, text, area);
  return svg.document();
}

}  // namespace infer
