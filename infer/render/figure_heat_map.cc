// Heat maps as figures: rectangles where cells are few, an image where they are many.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "infer/render/figure.h"
#include "infer/render/figure_frame.h"
#include "infer/render/png.h"

namespace infer {
namespace {

constexpr double kSide = 440;  // of a square matrix
constexpr int64_t kMaxRectangles = 1024;
constexpr int64_t kMaxPixels = 1024;  // along one side
constexpr double kBarWidth = 14;

/// The number of pixels nearest to `wanted` that gives each of `count` cells equally many.
double whole_pixels(double wanted, int64_t count) {
  const auto cells = static_cast<double>(std::min(count, kMaxPixels));
  return std::max(std::round(wanted / cells), 1.0) * cells;
}

/// The picture's size: square cells where that is neither a thread nor a tower.
Area picture(const HeatMapFigure& figure, MatrixView matrix, double labels_width) {
  const double ratio = static_cast<double>(matrix.rows) / static_cast<double>(matrix.columns);
  const double width = ratio < 1 ? 1.2 * kSide : std::max(kSide / ratio, 0.4 * kSide);
  const double height = std::clamp(width * ratio, 0.4 * kSide, kSide);
  return area_for(figure.text, whole_pixels(width, matrix.columns),
                  whole_pixels(height, matrix.rows), labels_width);
}

/// Round numbers along a side of `count` cells, at their middles.
std::vector<Tick> number_ticks(int64_t count, double first, double from, double size) {
  const auto last = static_cast<double>(count - 1);
  const double cell = size / static_cast<double>(count);
  std::vector<Tick> ticks;
  Axis axis = make_axis(first, first + last, 8, false);
  if (count == 1) axis = {first, first, 1};
  axis.step = std::max(axis.step, 1.0);
  for (const double tick : axis.ticks()) {
    ticks.push_back({from + cell * (tick - first + 0.5), axis.label(tick)});
  }
  return ticks;
}

void draw_rectangles(Svg& svg, const Area& area, MatrixView matrix, const HeatMapFigure& figure,
                     Range range) {
  const double width = area.width / static_cast<double>(matrix.columns);
  const double height = area.height / static_cast<double>(matrix.rows);
  const auto name = [](const std::vector<std::string>& labels, double first, int64_t i) {
    return labels.empty() ? fmt::format("{:g}", first + static_cast<double>(i)) : labels[i];
  };
  for (int64_t i = 0; i < matrix.rows; ++i) {
    for (int64_t j = 0; j < matrix.columns; ++j) {
      const double value = matrix.at(i, j);
      if (!std::isfinite(value)) continue;
      const Point corner{area.left + width * static_cast<double>(j),
                         area.top + height * static_cast<double>(i)};
      svg.rect(corner, width, height,
               fmt::format("shape-rendering=\"crispEdges\" fill=\"{}\"",
                           hex(colour_at(figure.map, share_of(range, value)))),
               fmt::format("{}, {}: {:.6g}", name(figure.row_labels, figure.first_row, i),
                           name(figure.column_labels, figure.first_column, j), value));
    }
  }
}

void draw_image(Svg& svg, const Area& area, MatrixView matrix, ColourMap map, Range range) {
  constexpr size_t kColours = 256;
  std::vector<Colour> palette(kColours);
  for (size_t i = 0; i < kColours; ++i) {
    palette[i] = colour_at(map, static_cast<double>(i) / (kColours - 1));
  }
  const Matrix cells = block_means(matrix, (matrix.rows + kMaxPixels - 1) / kMaxPixels,
                                   (matrix.columns + kMaxPixels - 1) / kMaxPixels);
  std::vector<uint8_t> pixels;
  pixels.reserve(cells.values.size());
  for (const double value : cells.values) {
    pixels.push_back(static_cast<uint8_t>(std::lround(share_of(range, value) * (kColours - 1))));
  }
  svg.image({area.left, area.top}, area.width, area.height,
            png(pixels, cells.rows, cells.columns, palette));
}

/// The colours from low to high beside the picture, with ticks and what they mean.
void draw_colour_bar(Svg& svg, const Area& area, const HeatMapFigure& figure, const Axis& axis) {
  const std::string id =
      figure.map == ColourMap::kDiverging ? "phasor-diverging" : "phasor-colours";
  std::string stops;
  const auto colours = anchors(figure.map);
  for (size_t i = 0; i < colours.size(); ++i) {
    stops += fmt::format("<stop offset=\"{:g}\" stop-color=\"{}\"/>",
                         static_cast<double>(i) / static_cast<double>(colours.size() - 1),
                         hex(colours[i]));
  }
  svg.add(
      fmt::format("<linearGradient id=\"{}\" x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\">{}"
                  "</linearGradient>\n",
                  id, stops));
  const double left = area.right() + 16;
  svg.rect({left, area.top}, kBarWidth, area.height, fmt::format("fill=\"url(#{})\"", id));
  const Scale scale{area, {}, axis};
  double widest_label = 0;
  for (const double tick : axis.ticks()) {
    const double y = scale.y_at(tick);
    svg.line({left + kBarWidth, y}, {left + kBarWidth + 4, y}, "axis");
    svg.text({left + kBarWidth + 8, y + 4}, axis.label(tick));
    widest_label = std::max(widest_label, text_width(axis.label(tick)));
  }
  if (figure.value_label.empty()) return;
  svg.text({left + kBarWidth + 8 + widest_label + 16, area.top + area.height / 2},
           figure.value_label, Anchor::kMiddle, "text", true);
}

}  // namespace

std::string heat_map_figure(MatrixView matrix, const HeatMapFigure& figure) {
  const Range range = figure.range.value_or(colour_range(figure.map, matrix.values));
  const auto row_ticks = [&](const Area& area) {
    if (figure.row_labels.empty()) {
      return number_ticks(matrix.rows, figure.first_row, area.top, area.height);
    }
    return label_ticks(figure.row_labels, area.top, area.height / static_cast<double>(matrix.rows),
                       true);
  };
  const Area area = picture(figure, matrix, widest(row_ticks(picture(figure, matrix, 0))));
  const auto column_ticks =
      figure.column_labels.empty()
          ? number_ticks(matrix.columns, figure.first_column, area.left, area.width)
          : label_ticks(figure.column_labels, area.left,
                        area.width / static_cast<double>(matrix.columns), false);
  const Axis axis = make_axis(range.low, range.high, 6, false);
  double beside = 16 + kBarWidth + 8 + (figure.value_label.empty() ? 0 : 28);
  for (const double tick : axis.ticks()) {
    beside = std::max(beside, 16 + kBarWidth + 8 + text_width(axis.label(tick)) +
                                  (figure.value_label.empty() ? 0 : 28));
  }

  Svg svg(document_width(figure.text, area, beside), document_height(figure.text, area),
          figure.text.title);
  if (matrix.rows * matrix.columns <= kMaxRectangles) {
    draw_rectangles(svg, area, matrix, figure, range);
  } else {
    draw_image(svg, area, matrix, figure.map, range);
  }
  draw_box(svg, area);
  draw_x_ticks(svg, area, column_ticks, false);
  draw_y_ticks(svg, area, row_ticks(area), false);
  draw_colour_bar(svg, area, figure, axis);
  draw_texts(svg, figure.text, area);
  return svg.document();
}

}  // namespace infer
