// Figures made of marks: stacked bars and clock hands.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "infer/render/figure.h"
#include "infer/render/figure_frame.h"

namespace infer {
namespace {

constexpr double kWidth = 520, kHeight = 300;

/// How far the bars reach below and above zero.
Range reach(size_t bars, const std::vector<Part>& parts) {
  Range range;
  for (size_t i = 0; i < bars; ++i) {
    double below = 0, above = 0;
    for (const Part& part : parts) {
      const double value = part.values[i];
      if (!std::isfinite(value)) continue;
      (value < 0 ? below : above) += value;
    }
    range.low = std::min(range.low, below);
    range.high = std::max(range.high, above);
  }
  return range;
}

}  // namespace

std::string stacked_bars(const FigureText& text, const std::vector<std::string>& bars,
                         const std::vector<Part>& parts) {
  const Range range = reach(bars.size(), parts);
  Axis y_axis = make_axis(range.low, range.high, 6, true);
  double labels_width = 0;
  for (const double tick : y_axis.ticks()) {
    labels_width = std::max(labels_width, text_width(y_axis.label(tick)));
  }
  const Area area = area_for(text, kWidth, kHeight, labels_width);
  const Scale scale{area, {}, y_axis};
  std::vector<std::string> names;
  for (const Part& part : parts) names.push_back(part.name);

  Svg svg(document_width(text, area, legend_width(names)), document_height(text, area), text.title);
  std::vector<Tick> y_ticks;
  for (const double tick : y_axis.ticks())
    y_ticks.push_back({scale.y_at(tick), y_axis.label(tick)});
  draw_y_ticks(svg, area, y_ticks, true);
  const double slot = area.width / static_cast<double>(std::max<size_t>(bars.size(), 1));
  for (size_t i = 0; i < bars.size(); ++i) {
    double below = 0, above = 0;
    for (size_t k = 0; k < parts.size(); ++k) {
      const double value = parts[k].values[i];
      if (!std::isfinite(value)) continue;
      double& edge = value < 0 ? below : above;
      const double from = scale.y_at(edge), to = scale.y_at(edge + value);
      edge += value;
      svg.rect({area.left + slot * (static_cast<double>(i) + 0.1), std::min(from, to)}, 0.8 * slot,
               std::abs(to - from), fmt::format("class=\"{}\"", area_class(k)),
               fmt::format("{}, {}: {:.6g}", bars[i], parts[k].name, value));
    }
  }
  svg.line({area.left, scale.y_at(0)}, {area.right(), scale.y_at(0)}, "axis");
  draw_x_ticks(svg, area, label_ticks(bars, area.left, slot, false), false);
  draw_legend(svg, area, names, false);
  draw_texts(svg, text, area);
  return svg.document();
}

std::string clock_hands(const FigureText& text, MatrixView hands,
                        const std::vector<std::string>& row_labels,
                        const std::vector<std::string>& column_labels) {
  const int64_t clocks = hands.columns / 2;
  double longest = 0;
  for (int64_t i = 0; i < hands.rows * clocks; ++i) {
    const double length = std::hypot(hands.values[2 * i], hands.values[2 * i + 1]);
    if (std::isfinite(length)) longest = std::max(longest, length);
  }
  const double size =
      std::clamp(640.0 / static_cast<double>(std::max<int64_t>(clocks, 1)), 12.0, 52.0);
  const double radius = 0.44 * size;
  std::vector<Tick> labels = label_ticks(row_labels, 0, size, true);
  const Area area = area_for(text, size * static_cast<double>(clocks),
                             size * static_cast<double>(hands.rows), widest(labels));

  Svg svg(document_width(text, area, 0), document_height(text, area), text.title);
  for (int64_t p = 0; p < hands.rows; ++p) {
    for (int64_t k = 0; k < clocks; ++k) {
      const double x = hands.at(p, 2 * k), y = hands.at(p, 2 * k + 1);
      const Point centre{area.left + size * (static_cast<double>(k) + 0.5),
                         area.top + size * (static_cast<double>(p) + 0.5)};
      svg.circle(centre, radius, "class=\"axis\"",
                 fmt::format("{}, {}: ({:.6g}, {:.6g})", row_labels[p], column_labels[k], x, y));
      if (!std::isfinite(x) || !std::isfinite(y) || longest == 0) continue;
      const Point tip{centre.x + radius * x / longest, centre.y - radius * y / longest};
      svg.line(centre, tip, "line s0");
    }
  }
  draw_x_ticks(svg, area, label_ticks(column_labels, area.left, size, false), false);
  for (Tick& tick : labels) tick.at += area.top;
  draw_y_ticks(svg, area, labels, false);
  draw_texts(svg, text, area);
  return svg.document();
}

}  // namespace infer
