// The frame of a chart.
#include "infer/render/figure_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace infer {
namespace {

constexpr double kGap = 8;
constexpr double kLineHeight = 18;
constexpr double kTick = 4;

int decimals(double step) {
  return std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 12);
}

}  // namespace

std::vector<double> Axis::ticks() const {
  std::vector<double> ticks;
  const double slack = 1e-9 * step;
  for (double i = std::ceil((low - slack) / step); i * step <= high + slack; ++i) {
    ticks.push_back(i * step);
  }
  return ticks;
}

std::string Axis::label(double tick) const {
  if (std::abs(tick) < 1e-9 * step) return "0";
  const bool plain = step >= 1e-4 && std::max(std::abs(low), std::abs(high)) < 1e7;
  std::string text =
      plain ? fmt::format("{:.{}f}", tick, decimals(step)) : fmt::format("{:.4g}", tick);
  if (text.front() == '-') text.replace(0, 1, "−");
  return text;
}

Axis make_axis(double low, double high, int max_ticks, bool rounded) {
  if (!(high > low)) {
    const double room = low == 0 ? 1 : 0.5 * std::abs(low);
    low -= room;
    high += room;
  }
  const double rough = (high - low) / std::max(max_ticks, 1);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough * (1 - 1e-9)) step = factor * power;
  }
  if (!rounded) return {low, high, step};
  return {step * std::floor(low / step + 1e-9), step * std::ceil(high / step - 1e-9), step};
}

Area area_for(const FigureText& text, double width, double height, double y_labels_width) {
  const double left = kGap + (text.y_label.empty() ? 0 : kLineHeight) + y_labels_width + kTick + 4;
  const double top = kGap + 4 + (text.title.empty() ? 0 : kLineHeight + 4);
  return {std::max(left, 20.0), top, width, height};
}

double document_width(const FigureText& text, const Area& area, double beside) {
  const double title = area.left + text_width(text.title, 14) + 2 * kGap;
  return std::ceil(std::max(area.right() + beside + 2 * kGap, title));
}

double document_height(const FigureText& text, const Area& area) {
  return std::ceil(area.bottom() + kTick + kLineHeight +
                   (text.x_label.empty() ? 0 : kLineHeight + 2) + kGap);
}

void draw_texts(Svg& svg, const FigureText& text, const Area& area) {
  if (!text.title.empty()) {
    svg.text({area.left, kGap + kLineHeight - 4}, text.title, Anchor::kStart, "title");
  }
  if (!text.x_label.empty()) {
    svg.text({area.left + area.width / 2, area.bottom() + kTick + 2 * kLineHeight}, text.x_label,
             Anchor::kMiddle);
  }
  if (!text.y_label.empty()) {
    svg.text({kGap + 12, area.top + area.height / 2}, text.y_label, Anchor::kMiddle, "text", true);
  }
}

void draw_x_ticks(Svg& svg, const Area& area, const std::vector<Tick>& ticks, bool grid) {
  for (const Tick& tick : ticks) {
    if (grid) svg.line({tick.at, area.top}, {tick.at, area.bottom()}, "grid");
    svg.line({tick.at, area.bottom()}, {tick.at, area.bottom() + kTick}, "axis");
    svg.text({tick.at, area.bottom() + kTick + 14}, tick.label, Anchor::kMiddle);
  }
}

void draw_y_ticks(Svg& svg, const Area& area, const std::vector<Tick>& ticks, bool grid) {
  for (const Tick& tick : ticks) {
    if (grid) svg.line({area.left, tick.at}, {area.right(), tick.at}, "grid");
    svg.line({area.left - kTick, tick.at}, {area.left, tick.at}, "axis");
    svg.text({area.left - kTick - 4, tick.at + 4}, tick.label, Anchor::kEnd);
  }
}

void draw_box(Svg& svg, const Area& area) {
  svg.rect({area.left, area.top}, area.width, area.height, "class=\"axis\"");
}

void draw_axes(Svg& svg, const Scale& scale) {
  std::vector<Tick> x, y;
  for (const double tick : scale.x.ticks()) x.push_back({scale.x_at(tick), scale.x.label(tick)});
  for (const double tick : scale.y.ticks()) y.push_back({scale.y_at(tick), scale.y.label(tick)});
  draw_y_ticks(svg, scale.area, y, true);
  draw_x_ticks(svg, scale.area, x, true);
  draw_box(svg, scale.area);
}

double legend_width(const std::vector<std::string>& names) {
  double width = 0;
  for (const std::string& name : names) width = std::max(width, text_width(name));
  return names.empty() ? 0 : width + 3 * kGap + 20;
}

void draw_legend(Svg& svg, const Area& area, const std::vector<std::string>& names, bool lines) {
  const double left = area.right() + 2 * kGap;
  for (size_t i = 0; i < names.size(); ++i) {
    const double y = area.top + kLineHeight * (static_cast<double>(i) + 0.5);
    if (lines) {
      svg.line({left, y}, {left + 20, y}, line_class(i));
    } else {
      svg.rect({left + 4, y - 6}, 12, 12, fmt::format("class=\"{}\"", area_class(i)));
    }
    svg.text({left + 20 + kGap, y + 4}, names[i]);
  }
}

std::vector<Tick> label_ticks(const std::vector<std::string>& labels, double from, double size,
                              bool vertical) {
  double needed = kLineHeight - 2;
  if (!vertical) {
    for (const std::string& label : labels) needed = std::max(needed, text_width(label) + kGap);
  }
  const auto every = static_cast<size_t>(std::max(std::ceil(needed / size - 1e-9), 1.0));
  std::vector<Tick> ticks;
  for (size_t i = 0; i < labels.size(); i += every) {
    ticks.push_back({from + size * (static_cast<double>(i) + 0.5), labels[i]});
  }
  return ticks;
}

double widest(const std::vector<Tick>& ticks) {
  double width = 0;
  for (const Tick& tick : ticks) width = std::max(width, text_width(tick.label));
  return width;
}

}  // namespace infer
