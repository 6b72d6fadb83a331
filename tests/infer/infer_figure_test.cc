// Figures: documents that are well-formed, and numbers that can be read back out of the drawing.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <clocale>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <random>
#include <set>
#include <sstream>

#include "infer/render/figure.h"
#include "infer/render/png.h"
#include "infer/render/svg.h"
#include "tests/support/run_program.h"
#include "tests/support/test_files.h"

namespace infer {
namespace {

using phasor::TempFolder;

const bool kUtf8 = std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr;  // as main() does

/// An element's attributes, and the text within it.
struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;

  double number(const std::string& attribute) const { return std::stod(attributes.at(attribute)); }
};

/// Expects that every "&" begins one of XML's own names.
void expect_escaped(const std::string& text) {
  for (size_t i = text.find('&'); i != std::string::npos; i = text.find('&', i + 1)) {
    const std::string name = text.substr(i, text.find(';', i) - i + 1);
    EXPECT_TRUE(name == "&amp;" || name == "&lt;" || name == "&gt;" || name == "&quot;") << text;
  }
}

/// The elements of a figure, in order. Fails where tags do not close in order, an attribute is not
/// quoted, or text holds a bare "&" or "<".
std::vector<Element> parse(const std::string& svg) {
  std::vector<Element> elements;
  std::vector<size_t> open;
  for (size_t i = 0; i < svg.size();) {
    const size_t tag = std::min(svg.find('<', i), svg.size());
    const std::string text = svg.substr(i, tag - i);
    expect_escaped(text);
    if (!open.empty()) elements[open.back()].text += text;
    if (tag == svg.size()) break;
    const size_t end = svg.find('>', tag);
    if (end == std::string::npos) {
      ADD_FAILURE() << "a tag does not end";
      break;
    }
    std::string inside = svg.substr(tag + 1, end - tag - 1);
    i = end + 1;
    if (inside.starts_with('/')) {
      if (open.empty() || elements[open.back()].name != inside.substr(1)) {
        ADD_FAILURE() << inside << " closes nothing";
        break;
      }
      open.pop_back();
      continue;
    }
    const bool closed = inside.ends_with('/');
    if (closed) inside.pop_back();
    Element element{inside.substr(0, inside.find_first_of(" \n")), {}, ""};
    for (size_t at = element.name.size(); at < inside.size();) {
      const size_t equals = inside.find("=\"", at), last = inside.find('"', equals + 2);
      if (inside[at] != ' ' || equals == std::string::npos || last == std::string::npos) {
        ADD_FAILURE() << "no attribute: " << inside.substr(at);
        return elements;
      }
      const std::string name = inside.substr(at + 1, equals - at - 1);
      const std::string value = inside.substr(equals + 2, last - equals - 2);
      EXPECT_EQ(name.find_first_of(" \"&"), std::string::npos) << name;
      EXPECT_TRUE(element.attributes.emplace(name, value).second) << name << " twice";
      at = last + 1;
    }
    elements.push_back(element);
    if (!closed) open.push_back(elements.size() - 1);
  }
  EXPECT_TRUE(open.empty());
  return elements;
}

std::vector<Element> all(const std::vector<Element>& elements, const std::string& name,
                         const std::string& css_class = "") {
  std::vector<Element> found;
  for (const Element& element : elements) {
    const auto it = element.attributes.find("class");
    const std::string its = it == element.attributes.end() ? "" : it->second;
    if (element.name == name && (css_class.empty() || its.starts_with(css_class))) {
      found.push_back(element);
    }
  }
  return found;
}

double number(std::string text) {
  if (text.starts_with("−")) text.replace(0, std::string("−").size(), "-");
  return std::stod(text);
}

/// The linear map from places in the document to numbers, read off the outermost tick labels along
/// the bottom ("middle") or the left ("end").
class Reading {
 public:
  Reading(const std::vector<Element>& elements, const std::string& anchor) {
    const bool along_x = anchor == "middle";
    std::vector<std::pair<double, double>> ticks;
    for (const Element& text : all(elements, "text", "text")) {
      if (text.attributes.at("text-anchor") != anchor || text.attributes.contains("transform")) {
        continue;
      }
      if (text.text.find_first_not_of("−-0123456789.e+") != std::string::npos) continue;
      // Labels of the left axis stand 4 below their tick.
      ticks.emplace_back(along_x ? text.number("x") : text.number("y") - 4, number(text.text));
    }
    EXPECT_GE(ticks.size(), 2u);
    if (ticks.size() < 2) return;
    slope_ =
        (ticks.back().second - ticks.front().second) / (ticks.back().first - ticks.front().first);
    offset_ = ticks.front().second - slope_ * ticks.front().first;
  }
  double operator()(double place) const { return offset_ + slope_ * place; }
  /// What a rounding of 0.01 in the document means.
  double tolerance() const { return 0.03 * std::abs(slope_); }

 private:
  double slope_ = 0, offset_ = 0;
};

/// The points of a path, "M1 2L3 4".
std::vector<Point> points_of(const Element& path) {
  std::vector<Point> points;
  std::string data = path.attributes.at("d");
  for (char& c : data) c = c == 'M' || c == 'L' ? ' ' : c;
  std::istringstream stream(data);
  for (Point p; stream >> p.x >> p.y;) points.push_back(p);
  return points;
}

Series wave(const std::string& name, double frequency, double scale) {
  Series series{name, {}, {}};
  for (int i = 0; i < 60; ++i) {
    series.x.push_back(i);
    series.y.push_back(scale * std::sin(frequency * i));
  }
  return series;
}

TEST(FigureTest, ALineGoesThroughTheNumbersOfItsSeries) {
  for (const double scale : {1.0, 1e-5, 3e6, 0.37}) {
    const std::vector<Series> series = {wave("slow", 0.1, scale), wave("fast", 1.7, scale)};
    const auto elements = parse(line_chart({"Waves", "k", "sin"}, series));
    const Reading x(elements, "middle"), y(elements, "end");
    const auto paths = all(elements, "path", "line");
    ASSERT_EQ(paths.size(), 2u);
    for (size_t s = 0; s < 2; ++s) {
      const auto points = points_of(paths[s]);
      ASSERT_EQ(points.size(), series[s].x.size());
      for (size_t i = 0; i < points.size(); ++i) {
        ASSERT_NEAR(x(points[i].x), series[s].x[i], x.tolerance());
        ASSERT_NEAR(y(points[i].y), series[s].y[i], y.tolerance()) << scale;
      }
    }
  }
}

TEST(FigureTest, SeriesAreNamedBesideThePictureAndLookDifferent) {
  std::vector<Series> series;
  for (int i = 0; i < 16; ++i) series.push_back(wave(fmt::format("wave {}", i), 0.1 * i, 1));
  const auto elements = parse(line_chart({"Waves"}, series));
  std::set<std::string> looks;
  for (const Element& path : all(elements, "path", "line")) {
    looks.insert(path.attributes.at("class"));
  }
  EXPECT_EQ(looks.size(), 16u);
  size_t named = 0;
  const double width = all(elements, "svg")[0].number("width");
  for (const Element& text : all(elements, "text")) {
    if (!text.text.starts_with("wave ")) continue;
    ++named;
    EXPECT_LT(text.number("x") + text_width(text.text), width) << text.text;
    EXPECT_LT(text.number("y"), all(elements, "svg")[0].number("height"));
  }
  EXPECT_EQ(named, 16u);
}

TEST(FigureTest, AGapStaysAGap) {
  Series series = wave("w", 0.1, 1);
  series.y[10] = std::numeric_limits<double>::quiet_NaN();
  const auto elements = parse(line_chart({"Gap"}, {series}));
  const Element path = all(elements, "path", "line").at(0);
  EXPECT_EQ(points_of(path).size(), 59u);
  EXPECT_EQ(std::ranges::count(path.attributes.at("d"), 'M'), 2);
}

TEST(FigureTest, TextsAreEscaped) {
  const std::string nasty = "a<b & \"c\" > 'd'\x01\xff";
  for (const std::string& svg :
       {line_chart({nasty, nasty, nasty}, {{nasty, {0, 1}, {0, 1}}, {nasty, {0, 1}, {1, 0}}}),
        stacked_bars({nasty, nasty, nasty}, {nasty}, {{nasty, {1}}}),
        heat_map_figure(Matrix{{1, 2}, 1, 2},
                        {.text = {nasty}, .value_label = nasty, .row_labels = {nasty}}),
        clock_hands({nasty}, Matrix{{1, 0}, 1, 2}, {nasty}, {nasty}),
        scatter_path({nasty, nasty, nasty}, {0, 1}, {0, 1})}) {
    const auto elements = parse(svg);
    EXPECT_EQ(all(elements, "text", "title").at(0).text,
              "a&lt;b &amp; &quot;c&quot; &gt; 'd' \uFFFD");
  }
}

TEST(FigureTest, FewCellsAreRectanglesThatHoldTheirNumbers) {
  const Matrix matrix{{0.84147098, -0.41614684, 0.14112001, 1, 0, -1}, 2, 3};
  const auto elements = parse(
      heat_map_figure(matrix, {.text = {"Cells", "column", "row"}, .map = ColourMap::kDiverging}));
  size_t cell = 0;
  const auto rects = all(elements, "rect");
  const auto titles = all(elements, "title");
  for (const Element& rect : rects) {
    if (!rect.attributes.contains("shape-rendering")) continue;
    EXPECT_EQ(rect.attributes.at("fill"),
              hex(colour_at(ColourMap::kDiverging, (matrix.values[cell] + 1) / 2)));
    EXPECT_EQ(titles.at(cell + 1).text,
              fmt::format("{}, {}: {:.6g}", cell / 3, cell % 3, matrix.values[cell]));
    ++cell;
  }
  EXPECT_EQ(cell, 6u);
}

/// The bytes behind "base64,".
std::string embedded(const std::string& svg) {
  const std::string marker = "base64,";
  const size_t begin = svg.find(marker) + marker.size();
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (size_t i = begin; svg.at(i) != '"' && svg.at(i) != '='; ++i) {
    const char c = svg[i];
    const int digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                                             : 63;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xff);
    }
  }
  return out;
}

struct Image {
  int64_t rows = 0, columns = 0;
  std::vector<Colour> pixels;
};

Image decode(const std::string& bytes) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  EXPECT_NE(png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()), 0)
      << image.message;
  image.format = PNG_FORMAT_RGB;
  Image out{image.height, image.width, std::vector<Colour>(image.height * image.width)};
  EXPECT_NE(png_image_finish_read(&image, nullptr, out.pixels.data(), 0, nullptr), 0);
  return out;
}

TEST(FigureTest, ManyCellsAreAnImageWithAPixelForEach) {
  std::mt19937 random(1);
  for (const auto& [rows, columns] : {std::pair{33, 32}, {100, 512}, {1, 1025}, {1024, 1024}}) {
    Matrix matrix{{}, rows, columns};
    for (int i = 0; i < rows * columns; ++i) {
      matrix.values.push_back(static_cast<double>(random() % 1001) / 1000);
    }
    matrix.values[0] = 0;
    matrix.values[1] = 1;
    const std::string svg = heat_map_figure(matrix, {.text = {"Image"}});
    parse(svg);
    const Image image = decode(embedded(svg));
    if (columns > 1024) {
      EXPECT_EQ(image.columns, (columns + 1) / 2);
      continue;
    }
    ASSERT_EQ(image.rows, rows);
    ASSERT_EQ(image.columns, columns);
    for (size_t i = 0; i < matrix.values.size(); ++i) {
      const double step = std::round(matrix.values[i] * 255) / 255;
      ASSERT_EQ(image.pixels[i], colour_at(ColourMap::kSequential, step)) << i;
    }
  }
}

TEST(FigureTest, PartsOfABarAddUp) {
  const std::vector<Part> parts = {{"a", {0.5, 0.25, -0.5}}, {"b", {0.25, 0.75, 1.5}}};
  const auto elements = parse(stacked_bars({"Bars", "", "share"}, {"x", "y", "z"}, parts));
  const Reading y(elements, "end");
  const auto a = all(elements, "rect", "f0"), b = all(elements, "rect", "f1");
  ASSERT_EQ(a.size(), 3u + 1);  // and the legend's
  ASSERT_EQ(b.size(), 3u + 1);
  for (size_t i = 0; i < 3; ++i) {
    const auto top = [&](const Element& rect) { return y(rect.number("y")); };
    const auto bottom = [&](const Element& rect) {
      return y(rect.number("y") + rect.number("height"));
    };
    EXPECT_NEAR(top(a[i]) - bottom(a[i]), std::abs(parts[0].values[i]), y.tolerance());
    EXPECT_NEAR(top(b[i]) - bottom(b[i]), parts[1].values[i], y.tolerance());
    // What is negative hangs from zero; what is positive stands on the part before it.
    EXPECT_NEAR(bottom(b[i]), std::max(parts[0].values[i], 0.0), y.tolerance());
    EXPECT_NEAR(bottom(a[i]), std::min(parts[0].values[i], 0.0), y.tolerance());
  }
}

TEST(FigureTest, APathShowsItsPointsOnOneScale) {
  std::vector<double> x, y;
  for (int i = 0; i < 50; ++i) {
    x.push_back(3 * std::cos(0.1 * i));
    y.push_back(std::sin(0.1 * i));
  }
  const auto elements = parse(scatter_path({"Path", "first", "second"}, x, y, 1));
  const auto circles = all(elements, "circle");
  ASSERT_EQ(circles.size(), 50u);
  const double unit = (circles[10].number("cx") - circles[0].number("cx")) / (x[10] - x[0]);
  for (size_t i = 1; i < circles.size(); ++i) {
    EXPECT_NEAR(circles[i].number("cx") - circles[0].number("cx"), unit * (x[i] - x[0]), 0.03);
    EXPECT_NEAR(circles[i].number("cy") - circles[0].number("cy"), -unit * (y[i] - y[0]), 0.03);
  }
  EXPECT_EQ(all(elements, "title").at(1).text.substr(0, 2), "1:");
}

TEST(FigureTest, AHandPointsWhereItsPairPoints) {
  const double angle = std::numbers::pi / 3;
  const Matrix hands{{0, 1, std::sin(angle), std::cos(angle), 1, 0, 0, -0.5}, 2, 4};
  const auto elements =
      parse(clock_hands({"Clocks", "pair", "position"}, hands, {"0", "1"}, {"0", "1"}));
  const auto tips = all(elements, "line", "line s0");
  const auto rims = all(elements, "circle");
  ASSERT_EQ(tips.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(tips[i].attributes.at("x1"), rims[i].attributes.at("cx"));
    const double r = rims[i].number("r");
    EXPECT_NEAR(tips[i].number("x2") - tips[i].number("x1"), r * hands.values[2 * i], 0.02);
    EXPECT_NEAR(tips[i].number("y1") - tips[i].number("y2"), r * hands.values[2 * i + 1], 0.02);
  }
}

TEST(FigureTest, NothingAndASinglePointAreDrawnToo) {
  parse(line_chart({"Nothing"}, {}));
  parse(line_chart({"One"}, {{"p", {3}, {4}}}));
  parse(stacked_bars({"No bars"}, {}, {}));
  parse(scatter_path({"One"}, {0}, {0}));
  parse(heat_map_figure(Matrix{{5}, 1, 1}, {.text = {"One"}}));
  parse(clock_hands({"Still"}, Matrix{{0, 0}, 1, 2}, {"0"}, {"0"}));
}

TEST(FigureTest, XmllintFindsNothingToSay) {
  if (phasor::run_program({"/bin/sh", "-c", "command -v xmllint"}).exit_code != 0) {
    GTEST_SKIP() << "there is no xmllint here";
  }
  const TempFolder folder;
  const Matrix matrix{std::vector<double>(2000, 1), 40, 50};
  const std::string chart = line_chart({"a & b"}, {wave("w", 0.1, 1), wave("v<", 0.2, 1)});
  for (const std::string& svg : {chart, heat_map_figure(matrix, {.text = {"m"}})}) {
    const auto file = folder.write("a.svg", svg);
    const auto result = phasor::run_program({"/usr/bin/env", "xmllint", "--noout", file.string()});
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

}  // namespace
}  // namespace infer
