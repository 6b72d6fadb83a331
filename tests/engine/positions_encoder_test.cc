// Positions: the sinusoidal tables against published numbers and an independent formula, the names
// of positions and edits; in a run every source, edit and overflow policy, against the oracle and
// against runs that must be the same.
#include "tests/support/encoder_cases.h"
#include "tests/support/reference_encoder.h"
#include "tests/support/resident_memory.h"

namespace phasor {
namespace {

constexpr int64_t kRows = 12;  // small_config()'s max_positions

constexpr std::array kLayouts = {SinusoidalLayout::kPaper, SinusoidalLayout::kMarian,
                                 SinusoidalLayout::kT2T, SinusoidalLayout::kFairseq,
                                 SinusoidalLayout::kOpenNmt};

std::shared_ptr<const Model> model_with(PositionConfig position, RandomModelExtras extras = {}) {
  ModelConfig config = small_config(position);
  config.d_model = 18;
  return random_model(config, 41, extras);
}

std::shared_ptr<const Model> learned_model(int64_t first_position = 0) {
  return model_with({.kind = PositionKind::kLearned, .first_position = first_position});
}

std::vector<float> positions_of(const Encoding& encoding) {
  return {encoding[0].positions.begin(), encoding[0].positions.end()};
}

TEST(PositionsInEncoderTest, AFirstPositionFarOffTakesNoMemoryForTheRowsBeforeIt) {
  constexpr int64_t kFirst = 1 << 24;
  const auto model = model_with({.kind = PositionKind::kSinusoidal, .first_position = kFirst});
  Encoder encoder(model);
  const int64_t before = resident_memory();
  expect_matches_reference(model, {random_ids(*model, 3, 1)});
  // In any order: rows that are kept, that are added to them, and that lie before and after.
  for (const int64_t num_tokens : {3, 9, 4}) {
    for (const int64_t shift : {int64_t{0}, -kFirst, -int64_t{5}, int64_t{7}}) {
      const auto rows = model->position_vectors(num_tokens, Positions().shifted(shift));
      for (int64_t t = 0; t < num_tokens; ++t) {
        std::vector<float> expected(18);
        const PositionConfig& own = model->config().position;
        sinusoidal_row(own.layout, own.base, static_cast<double>(kFirst + shift + t), 18,
                       expected.data());
        expect_same_bits(std::span(rows).subspan(t * 18, 18), expected,
                         "token " + std::to_string(t) + " moved by " + std::to_string(shift));
      }
    }
  }
  EXPECT_LT(resident_memory() - before, 64 << 20);  // 2^24 rows are 1.2 GB
}

TEST(PositionsInEncoderTest, EverySinusoidalLayoutMatchesTheReference) {
  for (const auto layout : kLayouts) {
    SCOPED_TRACE(to_string(layout));
    const auto own = model_with(
        {.kind = PositionKind::kSinusoidal, .layout = layout, .base = 500.0, .first_position = 4});
    expect_matches_reference(own, {random_ids(*own, 9, 1)});
    for (const auto& model : {own, learned_model(), model_with({})}) {  // in its own and in others
      expect_matches_reference(model, {random_ids(*model, 20, 1)},
                               {.positions = Positions::sinusoidal(layout, 77.0)});
    }
    for (const Positions& far : {Positions().shifted(-100), Positions().at({-5, 1000000, 0})})
      expect_matches_reference(own, {random_ids(*own, 3, 1)}, {.positions = far});
  }
}

TEST(PositionsInEncoderTest, UncountedTokensDoNotAdvanceTheCounterAndTakeTheirOwnRow) {
  const TokenIds ids = {1, 5, 6, 1, 1, 7, 1};
  const std::vector<float> expected = {1, 2, 3, 1, 1, 4, 1};
  for (const auto kind : {PositionKind::kSinusoidal, PositionKind::kLearned}) {
    const auto model = model_with({.kind = kind,
                                   .layout = SinusoidalLayout::kFairseq,
                                   .first_position = 2,
                                   .uncounted_token = 1});
    Recorder recorder;
    const Encoding encoding = Encoder(model).encode_ids(ids, {.observer = &recorder});
    EXPECT_EQ(positions_of(encoding), expected);
    const auto& added = recorder.values(Hook::kPosEmbed);
    const bool zero = std::count(added.begin(), added.begin() + 18, 0.0f) == 18;
    EXPECT_EQ(zero, kind == PositionKind::kSinusoidal);
    expect_matches_reference(model, {ids, {1}, {8, 9}});
    expect_matches_reference(model, {ids}, {.positions = Positions().shifted(2).reversed()});
  }
}

TEST(PositionEditsTest, WhatCannotBeDoneIsAnErrorThatNamesTheValue) {
  const auto model = learned_model();
  Encoder encoder(model);
  const TokenIds ids = random_ids(*model, 5, 1);
  const auto refused = [&](const Positions& positions, const std::vector<std::string>& words) {
    EXPECT_INVALID(encoder.encode_ids(ids, {.positions = positions}), words);
    EXPECT_EQ(encoder.encode_ids(ids).token_ids.size(), 5u) << "usable after the error";
  };
  refused(Positions().shifted(8), {"12", "11"});
  refused(Positions().shifted(-1), {"-1", "11"});
  refused(Positions().at({0, 1, 2, 3, 500}), {"500", "11"});
  refused(Positions().at({0, 1, 2}), {"3", "5"});
  refused(Positions().swapped(0, 5), {"5", "4"});
  refused(Positions().swapped(-2, 0), {"-2"});
  const PositionTable narrow = {.rows = 5, .d_model = 17, .values = std::vector<float>(5 * 17)};
  refused(Positions::table(narrow), {"17", "18"});
  const auto refused_by = [](const std::shared_ptr<const Model>& other,
                             const std::vector<TokenIds>& batch, const Positions& positions,
                             const std::vector<std::string>& words) {
    EXPECT_INVALID(Encoder(other).encode_ids(batch, {.positions = positions}), words);
  };
  refused_by(model, {{1, 2}, {3, 4}}, Positions().at({0, 1}), {"2"});  // one sequence's
  refused_by(model_with({}), {{1}}, Positions::learned(), {"table", "none"});
  refused_by(random_model(small_config(), 42), {{1}},  // 15 wide
             Positions::sinusoidal(SinusoidalLayout::kOpenNmt), {"opennmt", "15"});
}

TEST(OverflowTest, SinusoidsAndNoPositionsNeverEnd) {
  for (const PositionConfig& position :
       {PositionConfig(), PositionConfig{.kind = PositionKind::kSinusoidal},
        PositionConfig{.bias = ScoreBias::kBuckets, .num_buckets = 4, .max_distance = 3}}) {
    const auto model = model_with(position);
    Encoder encoder(model);
    EXPECT_EQ(encoder.model().max_tokens(), std::nullopt);
    const TokenIds ids = random_ids(*model, 40, 1);
    const Encoding expected = encoder.encode_ids(ids);
    for (const auto overflow :
         {Overflow::kTruncate, Overflow::kClamp, Overflow::kInterpolate, Overflow::kWindow})
      expect_same_bits(hidden_of(encoder.encode_ids(ids, {.overflow = overflow})),
                       expected[0].hidden, std::string(to_string(overflow)));
  }
  const auto learned = learned_model();
  const Encoder encoder(learned);
  EXPECT_EQ(encoder.model().max_tokens(Positions::none()), std::nullopt);
  EXPECT_EQ(
      model_with({.kind = PositionKind::kSinusoidal}, {.store_position_table = true})->max_tokens(),
      kRows);
  EXPECT_EQ(encoder.model().max_tokens(Positions::table(drawn_table(7, 1))), 7);
}

TEST(OverflowTest, EveryTableLengthInterpolatesEveryTextLength) {
  for (const int64_t rows : {1, 2, 8, 15}) {
    const Positions positions = Positions::table(drawn_table(rows, 8));
    const auto model = learned_model();
    Encoder encoder(model);
    for (int64_t num_tokens = 1; num_tokens < 45; num_tokens += num_tokens == 26 ? 4 : 5) {
      const Encoding encoding =
          encoder.encode_ids(random_ids(*model, num_tokens, 1),
                             {.positions = positions, .overflow = Overflow::kInterpolate});
      EXPECT_EQ(encoding[0].positions.back(), std::min(num_tokens, rows) - 1);
    }
  }
}

std::vector<double> row_of(SinusoidalLayout layout, double base, double position, int64_t d_model) {
  std::vector<double> row(d_model, 99.0);
  sinusoidal_row(layout, base, position, d_model, row.data());
  return row;
}

void expect_row(const std::vector<double>& actual, const std::vector<double>& expected,
                double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t c = 0; c < actual.size(); ++c)
    EXPECT_NEAR(actual[c], expected[c], tolerance) << "column " << c;
}

TEST(PositionTableTest, AreThePublishedOnes) {
  const std::vector<double> table = sinusoidal_table(SinusoidalLayout::kPaper, 4, 4, 100.0);
  expect_row(table,
             {0, 1, 0, 1,                                        //
              0.84147098, 0.54030231, 0.09983342, 0.99500417,    //
              0.90929743, -0.41614684, 0.19866933, 0.98006658,   //
              0.14112001, -0.98999250, 0.29552021, 0.95533649},  //
             5.0e-9);
  const auto wide = sinusoidal_table(SinusoidalLayout::kPaper, 100, 512);
  EXPECT_NEAR(std::accumulate(wide.begin(), wide.end(), 0.0), 18297.143808534354, 1e-7);
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
          for (int64_t c = 0; c < d_model; ++c)
            expected.push_back(reference::sinusoid(layout, base, position, d_model, c));
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
  EXPECT_INVALID(sinusoidal_row(SinusoidalLayout::kOpenNmt, 1e4, 1, 5, row.data()),
                 {"opennmt", "5"});
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
        std::pair{"sinusoidal", Source::kSinusoidal}})
    EXPECT_EQ(Positions::named(name, own).source(), source) << name;
  EXPECT_EQ(Positions::named("sinusoidal", own).layout(), SinusoidalLayout::kMarian);
  EXPECT_EQ(Positions::named("sinusoidal:t2t", own).layout(), SinusoidalLayout::kT2T);
  EXPECT_EQ(Positions::named("sinusoidal:t2t", own).base(), 500);
  EXPECT_EQ(Positions::named("rotary:160000", own).base(), 160000);
  for (const char* const wrong : {"roatry", "none:1", "sinusoidal:", "sinusoidal:paris",
                                  "rotary:", "rotary:1", "rotary:inf", "rotary:1e4x", "table"})
    EXPECT_THROW(Positions::named(wrong, own), InvalidArgument) << wrong;
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
                                  "swap=2,5,6", "shuffle=-1", "reverse=1", "mean=1"})
    EXPECT_THROW(Positions().edited(wrong), InvalidArgument) << wrong;
}

}  // namespace
}  // namespace phasor
