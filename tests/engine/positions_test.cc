// The sinusoidal tables against published numbers, closed forms and an independent formula; the
// names of layouts and policies.
#include "phasor/positions.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "phasor/errors.h"
#include "tests/support/reference_positions.h"

namespace phasor {
namespace {

constexpr std::array kLayouts = {SinusoidalLayout::kPaper, SinusoidalLayout::kMarian,
                                 SinusoidalLayout::kT2T, SinusoidalLayout::kFairseq,
                                 SinusoidalLayout::kOpenNmt};

std::vector<double> row_of(SinusoidalLayout layout, double base, double position, int64_t d_model) {
  std::vector<double> row(d_model, 99.0);
  sinusoidal_row(layout, base, position, d_model, row.data());
  return row;
}

std::vector<double> paper_row(double position, int64_t d_model, double base = 10000.0) {
  return row_of(SinusoidalLayout::kPaper, base, position, d_model);
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void expect_row(const std::vector<double>& actual, const std::vector<double>& expected,
                double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t c = 0; c < actual.size(); ++c) {
    EXPECT_NEAR(actual[c], expected[c], tolerance) << "column " << c;
  }
}

TEST(PositionTableTest, FourByFourWithBase100MatchesTheTutorial) {
  const std::vector<double> table = sinusoidal_table(SinusoidalLayout::kPaper, 4, 4, 100.0);
  expect_row(table,
             {0, 1, 0, 1,                                        //
              0.84147098, 0.54030231, 0.09983342, 0.99500417,    //
              0.90929743, -0.41614684, 0.19866933, 0.98006658,   //
              0.14112001, -0.98999250, 0.29552021, 0.95533649},  //
             5.0e-9);
}

TEST(PositionTableTest, SixWordsCountedFromOneMatchTheTutorial) {
  const auto table = sinusoidal_table(SinusoidalLayout::kPaper, 6, 4, 10000.0, 1);
  expect_row({table.begin(), table.begin() + 4}, {0.841471, 0.540302, 0.01, 0.99995}, 5.0e-7);
  expect_row({table.end() - 4, table.end()}, {-0.279415, 0.96017, 0.059964, 0.998201}, 5.0e-7);
}

TEST(PositionTableTest, TenByFourPrintsAsItsFloat32TutorialDoes) {
  const auto print = [](double value) {
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "%.4f", value);
    return std::string(text.data());
  };
  std::array<float, 4> row{};
  sinusoidal_row(SinusoidalLayout::kPaper, 10000.0, 1, 4, row.data());
  EXPECT_EQ(print(row[0]), "0.8415");
  EXPECT_EQ(print(row[1]), "0.5403");
  EXPECT_EQ(print(row[2]), "0.0100");
  EXPECT_EQ(print(row[3]), "0.9999");
  EXPECT_EQ(print(paper_row(1, 4)[3]), "1.0000");  // from double it rounds up
  EXPECT_EQ(sinusoidal_table(SinusoidalLayout::kPaper, 10, 4).size(), 40u);
}

TEST(PositionTableTest, Width512RowOneMatchesTheTutorialsTruncatedDigits) {
  const std::vector<double> row = paper_row(1, 512);
  const auto truncated = [](double value) { return std::floor(value * 1e4) / 1e4; };
  EXPECT_NEAR(truncated(row[0]), 0.8414, 1e-9);
  EXPECT_NEAR(truncated(row[1]), 0.5403, 1e-9);
  EXPECT_NEAR(truncated(row[2]), 0.8218, 1e-9);
  EXPECT_NEAR(truncated(row[3]), 0.5696, 1e-9);
  EXPECT_NEAR(truncated(row[510]), 0.0001, 1e-9);
  EXPECT_NEAR(truncated(row[511]), 0.9999, 1e-9);
}

TEST(PositionTableTest, SumOfTheHundredBy512TableIsThePublishedOne) {
  const auto table = sinusoidal_table(SinusoidalLayout::kPaper, 100, 512);
  EXPECT_NEAR(std::accumulate(table.begin(), table.end(), 0.0), 18297.143808534354, 1e-7);
}

TEST(PositionTableTest, CosineDistancesAtWidth1024AreThePublishedOnes) {
  const auto distance = [](double p, double q) {
    const auto a = paper_row(p, 1024), b = paper_row(q, 1024);
    return 1.0 - dot(a, b) / std::sqrt(dot(a, a) * dot(b, b));
  };
  EXPECT_NEAR(distance(1, 2), 0.026488616022189992, 1e-12);
  EXPECT_NEAR(distance(1, 3), 0.09339161307513, 1e-12);
  EXPECT_NEAR(distance(1, 30), 0.4323030365719962, 1e-12);
  EXPECT_NEAR(distance(30, 31), 0.02648861602218988, 1e-12);
  EXPECT_LT(distance(1, 70), distance(1, 69));  // not monotonic, whatever is said of it
}

TEST(PositionTableTest, OddWidthEndsWithASineInThePaperLayout) {
  expect_row(paper_row(1, 5), {0.8415, 0.5403, 0.0251, 0.9997, std::sin(std::pow(1e4, -0.8))},
             5.0e-5);
}

TEST(PositionTableTest, OddWidthHasOneMoreSineInTheMarianLayout) {
  const double slow = std::pow(1e4, -0.4), slower = std::pow(1e4, -0.8);
  expect_row(
      row_of(SinusoidalLayout::kMarian, 1e4, 3, 5),
      {std::sin(3.0), std::sin(3 * slow), std::sin(3 * slower), std::cos(3.0), std::cos(3 * slow)},
      1e-15);
}

TEST(PositionTableTest, OddWidthEndsWithAZeroInTheTensor2TensorLayouts) {
  for (const auto layout : {SinusoidalLayout::kT2T, SinusoidalLayout::kFairseq}) {
    expect_row(row_of(layout, 1e4, 3, 5),
               {std::sin(3.0), std::sin(3e-4), std::cos(3.0), std::cos(3e-4), 0}, 1e-15);
  }
}

TEST(PositionTableTest, OddWidthIsAnErrorInTheOpenNmtLayout) {
  std::vector<double> row(5);
  try {
    sinusoidal_row(SinusoidalLayout::kOpenNmt, 1e4, 1, 5, row.data());
    FAIL() << "no error";
  } catch (const InvalidArgument& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("opennmt"), std::string::npos) << message;
    EXPECT_NE(message.find('5'), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  std::vector<float> float_row(7);
  EXPECT_THROW(sinusoidal_row(SinusoidalLayout::kOpenNmt, 1e4, 1, 7, float_row.data()),
               InvalidArgument);
  EXPECT_THROW(sinusoidal_table(SinusoidalLayout::kOpenNmt, 2, 3), InvalidArgument);
}

TEST(PositionTableTest, WidthTwoIsOneSineAndOneCosineInEveryLayout) {
  for (const auto layout : kLayouts) {
    SCOPED_TRACE(to_string(layout));
    expect_row(row_of(layout, 1e4, 7, 2), {std::sin(7.0), std::cos(7.0)}, 1e-15);
  }
}

TEST(PositionTableTest, EveryLayoutMatchesAnIndependentFormula) {
  for (const auto layout : kLayouts) {
    for (const int64_t d_model : {1, 2, 3, 4, 7, 8, 33, 128}) {
      if (layout == SinusoidalLayout::kOpenNmt && d_model % 2 != 0) continue;
      for (const double position : {0.0, 1.0, 2.5, 77.0, 1000.0, -3.0}) {
        for (const double base : {10000.0, 100.0}) {
          SCOPED_TRACE(std::string(to_string(layout)) + " d " + std::to_string(d_model) + " p " +
                       std::to_string(position));
          std::vector<double> expected;
          for (int64_t c = 0; c < d_model; ++c) {
            expected.push_back(reference::sinusoid(layout, base, position, d_model, c));
          }
          expect_row(row_of(layout, base, position, d_model), expected, 1e-12);
        }
      }
    }
  }
}

TEST(PositionTableTest, FloatRowIsTheDoubleRowRounded) {
  for (const auto layout : kLayouts) {
    const std::vector<double> row = row_of(layout, 1e4, 123.25, 64);
    std::vector<float> rounded(64);
    sinusoidal_row(layout, 1e4, 123.25, 64, rounded.data());
    for (size_t c = 0; c < row.size(); ++c) EXPECT_EQ(rounded[c], static_cast<float>(row[c]));
  }
}

TEST(PositionTableTest, TableStartsAtItsFirstPositionAndIsAPrefixOfALongerOne) {
  const auto table = sinusoidal_table(SinusoidalLayout::kT2T, 5, 6, 500.0, 9);
  const auto longer = sinusoidal_table(SinusoidalLayout::kT2T, 8, 6, 500.0, 9);
  ASSERT_EQ(table.size(), 30u);
  EXPECT_TRUE(std::equal(table.begin(), table.end(), longer.begin()));
  expect_row({table.begin() + 6, table.begin() + 12}, row_of(SinusoidalLayout::kT2T, 500.0, 10, 6),
             0);
  EXPECT_TRUE(sinusoidal_table(SinusoidalLayout::kPaper, 0, 4).empty());
}

TEST(PositionTableTest, ImpossibleTablesAreRefused) {
  EXPECT_THROW(sinusoidal_table(SinusoidalLayout::kPaper, -1, 4), InvalidArgument);
  EXPECT_THROW(sinusoidal_table(SinusoidalLayout::kPaper, 4, 0), InvalidArgument);
  EXPECT_THROW(sinusoidal_table(SinusoidalLayout::kPaper, 4, 4, 1.0), InvalidArgument);
  EXPECT_THROW(Positions::sinusoidal(SinusoidalLayout::kPaper, 0.5), InvalidArgument);
  EXPECT_THROW(Positions::table({.rows = 2, .d_model = 3, .values = {1, 2, 3, 4, 5}}),
               InvalidArgument);
}

TEST(PositionTableTest, EveryRowHasSquaredNormHalfTheWidth) {
  for (const auto layout : kLayouts) {
    for (const double position : {0.0, 1.0, 511.0}) {
      const auto row = row_of(layout, 1e4, position, 96);
      EXPECT_NEAR(dot(row, row), 48.0, 1e-12);
    }
  }
}

TEST(PositionTableTest, DotProductDependsOnTheOffsetAlone) {
  const double near_start = dot(paper_row(3, 64), paper_row(10, 64));
  EXPECT_NEAR(dot(paper_row(203, 64), paper_row(210, 64)), near_start, 1e-12);
  EXPECT_NEAR(dot(paper_row(210, 64), paper_row(203, 64)), near_start, 1e-12);
  EXPECT_GT(std::abs(dot(paper_row(3, 64), paper_row(11, 64)) - near_start), 1e-3);
}

TEST(PositionTableTest, ShiftingIsARotationThatDoesNotDependOnThePosition) {
  constexpr int64_t kWidth = 32, kShift = 5;
  for (const double position : {0.0, 1.0, 40.0, 300.0}) {
    const auto from = paper_row(position, kWidth);
    std::vector<double> rotated(kWidth);
    for (int64_t i = 0; i < kWidth / 2; ++i) {
      const double angle = kShift * std::pow(1e4, -2.0 * i / kWidth);
      const double sine = from[2 * i], cosine = from[2 * i + 1];
      rotated[2 * i] = std::cos(angle) * sine + std::sin(angle) * cosine;
      rotated[2 * i + 1] = -std::sin(angle) * sine + std::cos(angle) * cosine;
    }
    expect_row(paper_row(position + kShift, kWidth), rotated, 1e-13);
  }
}

TEST(PositionTableTest, LongestWavelengthStopsShortOf2PiBaseExceptInTensor2Tensor) {
  // The slowest pair returns to (0, 1) after one wavelength.
  const double longest = 2 * std::numbers::pi * std::pow(1e4, 510.0 / 512.0);
  EXPECT_NEAR(longest, 60611.5, 0.05);
  const auto paper = paper_row(longest, 512);
  EXPECT_NEAR(paper[510], 0.0, 1e-12);
  EXPECT_NEAR(paper[511], 1.0, 1e-12);
  EXPECT_GT(std::abs(paper_row(2 * std::numbers::pi * 1e4, 512)[510]), 0.2);

  const auto t2t = row_of(SinusoidalLayout::kT2T, 1e4, 2 * std::numbers::pi * 1e4, 512);
  EXPECT_NEAR(t2t[255], 0.0, 1e-12);
  EXPECT_NEAR(t2t[511], 1.0, 1e-12);
}

TEST(PositionTableTest, NearestRowsOfWidth512LieAtThePublishedDistance) {
  const auto origin = paper_row(0, 512);
  double smallest = 1e9;
  int offset_of_smallest = 0;
  for (int offset = 1; offset < 1000; ++offset) {
    const double squared = 512.0 - 2.0 * dot(origin, paper_row(offset, 512));
    if (squared < smallest) {
      smallest = squared;
      offset_of_smallest = offset;
    }
  }
  EXPECT_EQ(offset_of_smallest, 1);
  EXPECT_NEAR(std::sqrt(smallest), 3.714, 5e-4);
}

TEST(PositionNamesTest, LayoutsAndPoliciesPrintAndParseBothWays) {
  for (const auto layout : kLayouts) {
    EXPECT_EQ(parse<SinusoidalLayout>(to_string(layout)), layout);
  }
  EXPECT_EQ(parse<SinusoidalLayout>("marian"), SinusoidalLayout::kMarian);
  EXPECT_EQ(to_string(SinusoidalLayout::kT2T), "t2t");
  for (const auto policy : {Overflow::kError, Overflow::kTruncate, Overflow::kClamp,
                            Overflow::kInterpolate, Overflow::kWindow}) {
    EXPECT_EQ(parse<Overflow>(to_string(policy)), policy);
  }
  EXPECT_EQ(parse<Overflow>("window"), Overflow::kWindow);
  EXPECT_EQ(to_string(Overflow::kTruncate), "truncate");
}

TEST(PositionNamesTest, UnknownNamesAreRefusedWithTheListOfThoseThereAre) {
  const auto message_of = [](auto parse_name, const char* name) -> std::string {
    try {
      parse_name(name);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string layout = message_of(parse<SinusoidalLayout>, "papre");
  EXPECT_NE(layout.find("papre"), std::string::npos) << layout;
  EXPECT_NE(layout.find("paper, marian, t2t, fairseq, opennmt"), std::string::npos) << layout;
  const std::string policy = message_of(parse<Overflow>, "wrap");
  EXPECT_NE(policy.find("wrap"), std::string::npos) << policy;
  EXPECT_NE(policy.find("error, truncate, clamp, interpolate, window"), std::string::npos)
      << policy;
}

TEST(PositionsTest, HaveNames) {
  const PositionConfig own = {.layout = SinusoidalLayout::kMarian, .base = 500};
  using Source = Positions::Source;
  for (const auto& [name, source] :
       {std::pair{"own", Source::kModel}, std::pair{"", Source::kModel},
        std::pair{"none", Source::kNone}, std::pair{"learned", Source::kLearned},
        std::pair{"alibi", Source::kAlibi}, std::pair{"rotary", Source::kRotary},
        std::pair{"sinusoidal", Source::kSinusoidal}}) {
    EXPECT_EQ(Positions::named(name, own).source(), source) << name;
  }
  EXPECT_EQ(Positions::named("sinusoidal", own).layout(), SinusoidalLayout::kMarian);
  EXPECT_EQ(Positions::named("sinusoidal:t2t", own).layout(), SinusoidalLayout::kT2T);
  EXPECT_EQ(Positions::named("sinusoidal:t2t", own).base(), 500);
  EXPECT_EQ(Positions::named("rotary:160000", own).base(), 160000);
  for (const char* const wrong : {"roatry", "none:1", "sinusoidal:", "sinusoidal:paris",
                                  "rotary:", "rotary:1", "rotary:inf", "rotary:1e4x", "table"}) {
    EXPECT_THROW(Positions::named(wrong, own), InvalidArgument) << wrong;
  }
}

TEST(PositionsTest, HaveEditsByName) {
  const Positions edited =
      Positions().edited("shift=-3").edited("scale=0.5").edited("swap=2,5").edited("shuffle=7");
  EXPECT_EQ(edited.scale(), 0.5f);
  ASSERT_EQ(edited.edits().size(), 3u);
  EXPECT_EQ(std::get<Positions::Shift>(edited.edits()[0]).offset, -3);
  EXPECT_EQ(std::get<Positions::Swap>(edited.edits()[1]).j, 5);
  EXPECT_EQ(std::get<Positions::Shuffle>(edited.edits()[2]).seed, 7u);
  EXPECT_EQ(Positions().edited("zero").scale(), 0);
  EXPECT_TRUE(Positions().edited("mean").is_averaged());
  EXPECT_FALSE(Positions().edited("zero").is_averaged());
  EXPECT_EQ(Positions().edited("reverse").edited("repeat").edits().size(), 2u);
  for (const char* const wrong : {"", "twist", "scale=", "scale=nan", "shift=1.5", "swap=2",
                                  "swap=2,5,6", "shuffle=-1", "reverse=1", "mean=1"}) {
    EXPECT_THROW(Positions().edited(wrong), InvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace phasor
