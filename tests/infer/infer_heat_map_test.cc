// Heat maps in a terminal: what is drawn is what was given, in the lines and columns there are.
#include "infer/cli/terminal.h"
#include "infer/render/heat_map.h"
#include "tests/support/run_program.h"
#include "tests/support/test.h"

namespace infer {
namespace {

/// 0, 1, 2, … in rows.
Matrix counting(int64_t rows, int64_t columns) {
  Matrix matrix{.values = {}, .rows = rows, .columns = columns};
  for (int64_t i = 0; i < rows * columns; ++i) matrix.values.push_back(static_cast<double>(i));
  return matrix;
}

Range zero_to_largest(std::span<const double> cells) {
  Range range;
  for (const double cell : cells) range.high = std::fmax(range.high, cell);
  return range;
}

/// The cells' lines and the key, in a terminal of 22 columns.
std::vector<std::string> lines_of(const Matrix& matrix, RangeOf range_of = zero_to_largest) {
  return phasor::lines_of(heat_map(matrix, {}, 22, range_of));
}

TEST(HeatMapTest, ShadesGrowWithTheNumbers) {
  EXPECT_EQ(heat_map(counting(1, 5), {}, 22, zero_to_largest), "    ░░▒▒▓▓██\n  0  ░▒▓█ 4\n");
}

TEST(HeatMapTest, ColumnsOfDifferentPhaseHaveNoMeanInCommon) {
  for (const int64_t columns : {40, 41, 57, 128, 201}) {
    Matrix stripes{.values = {}, .rows = 2, .columns = columns};
    for (int64_t i = 0; i < 2 * columns; ++i) {
      stripes.values.push_back(static_cast<double>(i % columns % 2));
    }
    const std::string map = heat_map(stripes, {}, 22, zero_to_largest, 2);
    const std::string line = phasor::lines_of(map).at(0).substr(2);
    EXPECT_LE(display_width(line), 20) << columns;
    for (size_t at = 0; !line.substr(at).empty(); at += std::string(" █").size()) {
      const std::string pair = line.substr(at, 4);  // the last may be a sine alone
      EXPECT_TRUE(pair == " █" || pair == " ") << columns << ": " << line;
    }
    EXPECT_NE(map.find("sines apart"), std::string::npos) << columns;
  }
}

TEST(HeatMapTest, AMatrixThatJustFitsIsNotAveraged) {
  const auto fits = lines_of(counting(3, 10)), narrow = lines_of(counting(3, 20));
  for (const auto& lines : {fits, narrow}) {
    ASSERT_EQ(lines.size(), 4u);
    EXPECT_EQ(display_width(lines[0]), 22);
    EXPECT_EQ(lines[3].find("mean"), std::string::npos);
  }
}

TEST(HeatMapTest, NoLineIsWiderThanTheTerminal) {
  for (const int64_t columns : {1, 7, 39, 40, 41, 79, 80, 81, 128, 512, 1000}) {
    for (const int64_t rows : {1, 5, 33, 100, 513}) {
      const std::vector<std::string> labels(static_cast<size_t>(rows), "日本語");
      auto lines = phasor::lines_of(heat_map(counting(rows, columns), labels, 80, zero_to_largest));
      EXPECT_LE(display_width(lines.back()), 80);
      lines.pop_back();
      EXPECT_LE(lines.size(), 32u);
      for (const std::string& line : lines) {
        EXPECT_LE(display_width(line), 80) << rows << " x " << columns;
        EXPECT_TRUE(line.starts_with("  日本語"));
      }
    }
  }
}

TEST(HeatMapTest, LargerMatricesShowMeansAndSayOfHowManyCells) {
  // Each block of 4 × 2 has one mean, whatever is inside: a checkerboard is uniform.
  Matrix board{.values = {}, .rows = 40, .columns = 40};
  for (int64_t i = 0; i < 1600; ++i) board.values.push_back((i / 40 + i % 40) % 2 == 0 ? 1 : -1);
  const auto lines = lines_of(board, [](auto) { return Range{-1, 1}; });
  ASSERT_EQ(lines.size(), 11u);
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(lines[i].find_first_not_of(" ▒"), std::string::npos);
  EXPECT_NE(lines[10].find("mean of 4 × 2"), std::string::npos) << lines[10];
}

TEST(HeatMapTest, ASymmetricRangeReachesAsFarBelowZeroAsAbove) {
  const Range range = symmetric_range(std::vector<double>{-1, 0, 3});
  EXPECT_EQ(range.low, -3);
  EXPECT_EQ(range.high, 3);
}

TEST(HeatMapTest, NumbersThatAreNoneAndMatricesOfOneNumberAreShown) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(lines_of({{0, nan, 1}, 1, 3})[0], "    ··██");
  EXPECT_EQ(lines_of({{0, 0}, 1, 2})[0], "  ▒▒▒▒");
}

TEST(HeatMapTest, BlockMeansLeaveOutWhatIsNoNumber) {
  Matrix matrix{.values = std::vector<double>(80, 1), .rows = 2, .columns = 40};
  for (int i = 0; i < 80; i += 2) matrix.values[i] = std::nan("");
  matrix.values[41] = 0;
  const auto lines = lines_of(matrix);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].find("·"), std::string::npos) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("   █")) << lines[1];
}

}  // namespace
}  // namespace infer
