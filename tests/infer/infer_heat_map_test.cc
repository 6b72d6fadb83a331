// Heat maps in a terminal: what is drawn is what was given, in the lines and columns there are.
#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <limits>

#include "infer/render/heat_map.h"
#include "infer/render/terminal.h"

namespace infer {
namespace {

const bool kUtf8 = std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr;  // as main() does

/// 0, 1, 2, … in rows.
Matrix counting(int64_t rows, int64_t columns) {
  Matrix matrix{.values = {}, .rows = rows, .columns = columns};
  for (int64_t i = 0; i < rows * columns; ++i) matrix.values.push_back(static_cast<double>(i));
  return matrix;
}

/// `line` without its colours.
std::string plain(const std::string& line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\033') {
      i = line.find('m', i);
    } else {
      out += line[i];
    }
  }
  return out;
}

TEST(HeatMapTest, ShadesGrowWithTheNumbers) {
  const Matrix matrix = counting(1, 5);
  const std::vector<std::string> lines = heat_map(matrix, {.width = 20});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "  ░░▒▒▓▓██");
  EXPECT_EQ(heat_map_key(matrix, {.width = 20}), "0  ░▒▓█ 4");
}

TEST(HeatMapTest, ASmallMatrixHasACellForEachNumber) {
  const Matrix matrix = counting(3, 4);
  for (const bool colours : {false, true}) {
    const auto lines = heat_map(matrix, {.width = 20, .colours = colours});
    ASSERT_EQ(lines.size(), 3u);
    for (const std::string& line : lines) EXPECT_EQ(display_width(plain(line)), 8);
  }
}

TEST(HeatMapTest, AMatrixThatJustFitsIsNotAveraged) {
  const Matrix matrix = counting(3, 40);
  EXPECT_EQ(heat_map(matrix, {.width = 40}).size(), 3u);
  EXPECT_EQ(heat_map(matrix, {.width = 40, .colours = true}).size(), 2u);  // two rows a line
  EXPECT_EQ(heat_map_key(matrix, {.width = 40}).find("mean"), std::string::npos);
}

TEST(HeatMapTest, NoLineIsWiderThanAsked) {
  for (const int64_t columns : {1, 7, 39, 40, 41, 79, 80, 81, 128, 512, 1000}) {
    for (const int64_t rows : {1, 5, 33, 100, 513}) {
      for (const bool colours : {false, true}) {
        const HeatMapOptions options{
            .width = 80,
            .max_lines = 20,
            .colours = colours,
            .row_labels = std::vector<std::string>(static_cast<size_t>(rows), "日本語")};
        const auto lines = heat_map(counting(rows, columns), options);
        EXPECT_LE(lines.size(), 20u);
        for (const std::string& line : lines) {
          EXPECT_LE(display_width(plain(line)), 80) << rows << " x " << columns;
          EXPECT_EQ(display_width(plain(line)), display_width(plain(lines[0])));
          EXPECT_TRUE(plain(line).starts_with("日本語 "));
        }
      }
    }
  }
}

TEST(HeatMapTest, LargerMatricesShowMeansAndSayOfHowManyCells) {
  // Each block of 2 × 2 has one mean, whatever is inside: a checkerboard is uniform.
  Matrix board{.values = {}, .rows = 40, .columns = 40};
  for (int64_t i = 0; i < 1600; ++i) board.values.push_back((i / 40 + i % 40) % 2 == 0 ? 1 : -1);
  const HeatMapOptions options{.width = 20, .range = Range{-1, 1}};
  for (const std::string& line : heat_map(board, options)) {
    EXPECT_EQ(line.find_first_not_of("▒"), std::string::npos) << line;
  }
  EXPECT_NE(heat_map_key(board, options).find("mean of 4 × 2"), std::string::npos)
      << heat_map_key(board, options);
}

TEST(HeatMapTest, ACharacterShowsTwoRowsInTheirOwnColours) {
  Matrix matrix{.values = {}, .rows = 2, .columns = 30};
  for (int i = 0; i < 60; ++i) matrix.values.push_back(i < 30 ? 0 : 1);
  const auto lines = heat_map(matrix, {.width = 40, .colours = true});
  ASSERT_EQ(lines.size(), 1u);
  // 53: #5f005f, for viridis' dark violet; 227: #ffff5f, for its yellow.
  std::string want;
  for (int i = 0; i < 30; ++i) want += "\033[38;5;53;48;5;227m▀";
  EXPECT_EQ(lines[0], want + "\033[0m");
}

/// Lightness of an entry of the 256 colours' cube or greys, as sRGB's luma.
double lightness(int colour) {
  if (colour >= 232) return 8 + 10 * (colour - 232);
  const auto step = [](int i) { return i == 0 ? 0.0 : 55.0 + 40 * i; };
  const int i = colour - 16;
  return 0.2126 * step(i / 36) + 0.7152 * step(i / 6 % 6) + 0.0722 * step(i % 6);
}

TEST(HeatMapTest, ColoursGetEverLighterOrFadeToTheMiddle) {
  for (const ColourMap map : {ColourMap::kSequential, ColourMap::kDiverging}) {
    Matrix ramp{.values = {}, .rows = 1, .columns = 30};
    for (int i = 0; i < 30; ++i) ramp.values.push_back(i - 14.5);
    const std::string line = heat_map(ramp, {.colours = true, .map = map}).at(0);
    std::vector<double> shades;
    for (size_t i = line.find("48;5;"); i != std::string::npos; i = line.find("48;5;", i + 1)) {
      shades.push_back(lightness(std::stoi(line.substr(i + 5))));
    }
    ASSERT_EQ(shades.size(), 30u);
    for (size_t i = 1; i < 30; ++i) {
      if (map == ColourMap::kSequential || i < 15) {
        EXPECT_GE(shades[i], shades[i - 1]) << i;
      } else {
        EXPECT_LE(shades[i], shades[i - 1]) << i;
      }
    }
  }
}

TEST(HeatMapTest, ADivergingMapReachesAsFarBelowZeroAsAbove) {
  const Range range = colour_range(ColourMap::kDiverging, std::vector<double>{-1, 0, 3});
  EXPECT_EQ(range.low, -3);
  EXPECT_EQ(range.high, 3);
}

TEST(HeatMapTest, NumbersThatAreNoneAndMatricesOfOneNumberAreShown) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Matrix holes{.values = {0, nan, 1}, .rows = 1, .columns = 3};
  EXPECT_EQ(heat_map(holes, {.width = 20})[0], "  ··██");
  const Matrix same{.values = {7, 7}, .rows = 1, .columns = 2};
  EXPECT_EQ(heat_map(same, {.width = 20})[0], "▒▒▒▒");
}

TEST(HeatMapTest, BlockMeansLeaveOutWhatIsNoNumber) {
  Matrix matrix{.values = std::vector<double>(80, 1), .rows = 2, .columns = 40};
  for (int i = 0; i < 80; i += 2) matrix.values[i] = std::nan("");
  matrix.values[41] = 0;
  const auto lines = heat_map(matrix, {.width = 20});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].find("·"), std::string::npos) << lines[0];
  EXPECT_TRUE(lines[1].starts_with(" █")) << lines[1];
}

}  // namespace
}  // namespace infer
