// SVG's elements as text.
#include "infer/render/svg.h"

#include <fmt/format.h>

#include <cmath>

#include "infer/render/terminal.h"

namespace infer {
namespace {

// Okabe and Ito's colours, without their yellow, which white paper swallows; lighter in the dark.
constexpr std::string_view kStyle = R"(<style>
.phasor{font-family:Helvetica,Arial,"Liberation Sans",sans-serif;font-size:12px}
.phasor .ground{fill:#fff}
.phasor .text{fill:#333a42}
.phasor .title{fill:#14181d;font-size:14px;font-weight:600}
.phasor .grid{stroke:#e3e7eb;stroke-width:1}
.phasor .axis{stroke:#8b949e;stroke-width:1;fill:none}
.phasor .line{fill:none;stroke-width:1.75;stroke-linejoin:round}
.phasor .second{stroke-dasharray:6 3}
.phasor .third{stroke-dasharray:2 3}
.phasor .s0{stroke:#0072b2}.phasor .f0{fill:#0072b2}
.phasor .s1{stroke:#d55e00}.phasor .f1{fill:#d55e00}
.phasor .s2{stroke:#009e73}.phasor .f2{fill:#009e73}
.phasor .s3{stroke:#cc79a7}.phasor .f3{fill:#cc79a7}
.phasor .s4{stroke:#e69f00}.phasor .f4{fill:#e69f00}
.phasor .s5{stroke:#56b4e9}.phasor .f5{fill:#56b4e9}
.phasor .s6{stroke:#6b7280}.phasor .f6{fill:#6b7280}
@media(prefers-color-scheme:dark){
.phasor .ground{fill:#15181c}
.phasor .text{fill:#c9d1d9}
.phasor .title{fill:#f0f3f6}
.phasor .grid{stroke:#2b3138}
.phasor .s0{stroke:#4aa8e8}.phasor .f0{fill:#4aa8e8}
.phasor .s1{stroke:#ff8f4f}.phasor .f1{fill:#ff8f4f}
.phasor .s2{stroke:#2cc79a}.phasor .f2{fill:#2cc79a}
.phasor .s3{stroke:#e29cc5}.phasor .f3{fill:#e29cc5}
.phasor .s4{stroke:#f4bd4f}.phasor .f4{fill:#f4bd4f}
.phasor .s5{stroke:#9ad4f5}.phasor .f5{fill:#9ad4f5}
.phasor .s6{stroke:#a0a8b1}.phasor .f6{fill:#a0a8b1}
}
</style>
)";

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t j = 0; j < 3; ++j) {
      const bool there = i + j < bytes.size();
      three = three << 8 | (there ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j) {
      out += i + j <= bytes.size() ? kDigits[three >> (18 - 6 * j) & 63] : '=';
    }
  }
  return out;
}

/// The end of an element: with a tooltip inside, or none.
std::string closing(std::string_view name, std::string_view tooltip) {
  if (tooltip.empty()) return "/>\n";
  return fmt::format("><title>{}</title></{}>\n", escaped(tooltip), name);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

double text_width(std::string_view text, double size) {
  constexpr double kMeanWidth = 0.56;  // of Helvetica's letters and digits, in em
  return kMeanWidth * size * display_width(printable(text));
}

std::string coordinate(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string line_class(size_t i) {
  const size_t round = i / kNumColours;
  const std::string_view dashes = round == 0 ? "" : round == 1 ? " second" : " third";
  return fmt::format("line s{}{}", i % kNumColours, dashes);
}

std::string area_class(size_t i) { return fmt::format("f{}", i % kNumColours); }

Svg::Svg(double width, double height, std::string_view title) {
  body_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"phasor\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" role=\"img\">\n<title>{2}</title>\n{3}",
      coordinate(width), coordinate(height), escaped(title), kStyle);
  rect({0, 0}, width, height, "class=\"ground\"");
}

void Svg::text(Point at, std::string_view text, Anchor anchor, std::string_view css_class,
               bool turned) {
  constexpr std::string_view kAnchors[] = {"start", "middle", "end"};
  const std::string x = coordinate(at.x), y = coordinate(at.y);
  const std::string turn = turned ? fmt::format(" transform=\"rotate(-90 {} {})\"", x, y) : "";
  body_ += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\"{}>{}</text>\n",
                       css_class, x, y, kAnchors[static_cast<int>(anchor)], turn, escaped(text));
}

void Svg::line(Point from, Point to, std::string_view css_class) {
  body_ += fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", css_class,
                       coordinate(from.x), coordinate(from.y), coordinate(to.x), coordinate(to.y));
}

void Svg::rect(Point corner, double width, double height, std::string_view attributes,
               std::string_view tooltip) {
  body_ += fmt::format("<rect {} x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}", attributes,
                       coordinate(corner.x), coordinate(corner.y), coordinate(width),
                       coordinate(height), closing("rect", tooltip));
}

void Svg::circle(Point centre, double radius, std::string_view attributes,
                 std::string_view tooltip) {
  body_ +=
      fmt::format("<circle {} cx=\"{}\" cy=\"{}\" r=\"{}\"{}", attributes, coordinate(centre.x),
                  coordinate(centre.y), coordinate(radius), closing("circle", tooltip));
}

void Svg::path(const std::vector<Point>& points, std::string_view attributes,
               std::string_view tooltip) {
  std::string data;
  bool drawing = false;
  for (const Point& point : points) {
    const bool there = std::isfinite(point.x) && std::isfinite(point.y);
    if (there) {
      data += fmt::format("{}{} {}", drawing ? "L" : "M", coordinate(point.x), coordinate(point.y));
    }
    drawing = there;
  }
  body_ += fmt::format("<path {} d=\"{}\"{}", attributes, data, closing("path", tooltip));
}

void Svg::image(Point corner, double width, double height, std::string_view png) {
  body_ += fmt::format(
      "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" "
      "style=\"image-rendering:optimizeSpeed;image-rendering:pixelated\" "
      "href=\"data:image/png;base64,{}\"/>\n",
      coordinate(corner.x), coordinate(corner.y), coordinate(width), coordinate(height),
      base64(png));
}

std::string Svg::document() const { return body_ + "</svg>\n"; }

}  // namespace infer
