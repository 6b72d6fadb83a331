// The sinusoidal tables against published numbers and an independent formula; the names of
// positions and edits.
#include "tests/support/reference_positions.h"
#include "tests/support/test.h"

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

TEST(PositionTableTest, SumOfTheHundredBy512TableIsThePublishedOne) {
  const auto table = sinusoidal_table(SinusoidalLayout::kPaper, 100, 512);
  EXPECT_NEAR(std::accumulate(table.begin(), table.end(), 0.0), 18297.143808534354, 1e-7);
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
    sinusoidal_row(column_pairs(layout, 64), 123.25, 64, rounded.data());
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
  std::vector<double> row(5);
  expect_error<InvalidArgument>(
      [&] { sinusoidal_row(SinusoidalLayout::kOpenNmt, 1e4, 1, 5, row.data()); }, {"opennmt", "5"});
  std::vector<float> float_row(7);
  EXPECT_THROW(sinusoidal_row(SinusoidalLayout::kOpenNmt, 1e4, 1, 7, float_row.data()),
               InvalidArgument);
  EXPECT_THROW(sinusoidal_table(SinusoidalLayout::kOpenNmt, 2, 3), InvalidArgument);
  EXPECT_THROW(sinusoidal_table(SinusoidalLayout::kPaper, -1, 4), InvalidArgument);
  EXPECT_THROW(sinusoidal_table(SinusoidalLayout::kPaper, 4, 0), InvalidArgument);
  EXPECT_THROW(sinusoidal_table(SinusoidalLayout::kPaper, 4, 4, 1.0), InvalidArgument);
  EXPECT_THROW(Positions::sinusoidal(SinusoidalLayout::kPaper, 0.5), InvalidArgument);
  EXPECT_THROW(Positions::table({.rows = 2, .d_model = 3, .values = {1, 2, 3, 4, 5}}),
               InvalidArgument);
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
