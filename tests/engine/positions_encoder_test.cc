// Positions in a run: every source, every edit and every overflow policy, against the oracle and
// against runs that must be the same.
#include "tests/support/encoder_cases.h"
#include "tests/support/resident_memory.h"

namespace phasor {
namespace {

constexpr int64_t kRows = 12;  // small_config()'s max_positions

std::shared_ptr<const Model> model_with(PositionConfig position, RandomModelExtras extras = {}) {
  ModelConfig config = small_config();
  config.d_model = 18;
  config.position = position;
  return random_model(config, 41, extras);
}

std::shared_ptr<const Model> learned_model(int64_t first_position = 0) {
  return model_with({.kind = PositionKind::kLearned, .first_position = first_position});
}

std::vector<float> positions_of(const Encoding& encoding) {
  return {encoding[0].positions.begin(), encoding[0].positions.end()};
}

std::vector<float> edited(const Positions& positions, int64_t num_tokens = 5) {
  const auto model = learned_model();
  return positions_of(
      Encoder(model).encode_ids(random_ids(*model, num_tokens, 1), {.positions = positions}));
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
      const std::vector<float> rows =
          model->position_vectors(num_tokens, Positions().shifted(shift));
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
  for (const auto layout :
       {SinusoidalLayout::kPaper, SinusoidalLayout::kMarian, SinusoidalLayout::kT2T,
        SinusoidalLayout::kFairseq, SinusoidalLayout::kOpenNmt}) {
    SCOPED_TRACE(to_string(layout));
    const auto own = model_with(
        {.kind = PositionKind::kSinusoidal, .layout = layout, .base = 500.0, .first_position = 4});
    expect_matches_reference(own, {random_ids(*own, 9, 1)});
    for (const auto& model : {own, learned_model(), model_with({})}) {  // in its own and in others
      expect_matches_reference(model, {random_ids(*model, 20, 1)},
                               {.positions = Positions::sinusoidal(layout, 77.0)});
    }
    for (const Positions& far : {Positions().shifted(-100), Positions().at({-5, 1000000, 0})}) {
      expect_matches_reference(own, {random_ids(*own, 3, 1)}, {.positions = far});
    }
  }
}

TEST(PositionsInEncoderTest, FirstPositionIsTheModelsOwnInItsOwnLayoutElseTheLayouts) {
  const auto own = model_with({.kind = PositionKind::kSinusoidal,
                               .layout = SinusoidalLayout::kFairseq,
                               .first_position = 7});
  const auto first = [](const std::shared_ptr<const Model>& model, const Positions& positions) {
    return positions_of(Encoder(model).encode_ids(TokenIds{1, 2}, {.positions = positions}))[0];
  };
  EXPECT_EQ(first(own, {}), 7);
  EXPECT_EQ(first(own, Positions::sinusoidal(SinusoidalLayout::kFairseq)), 7);
  EXPECT_EQ(first(own, Positions::sinusoidal(SinusoidalLayout::kPaper)), 0);
  EXPECT_EQ(first(own, Positions::sinusoidal(SinusoidalLayout::kOpenNmt)), 1);
  EXPECT_EQ(first(learned_model(), Positions::sinusoidal(SinusoidalLayout::kFairseq)), 2);
}

TEST(PositionsInEncoderTest, StoredTableWinsOverTheComputedOne) {
  const auto model = model_with({.kind = PositionKind::kSinusoidal, .first_position = 1},
                                {.store_position_table = true});
  expect_matches_reference(model, {random_ids(*model, 12, 1)});
  EXPECT_EQ(model->max_tokens(), kRows);
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
    const bool zero =
        std::all_of(added.begin(), added.begin() + 18, [](float x) { return x == 0; });
    EXPECT_EQ(zero, kind == PositionKind::kSinusoidal);
    expect_matches_reference(model, {ids, {1}, {8, 9}});
    expect_matches_reference(model, {ids}, {.positions = Positions().shifted(2).reversed()});
  }
}

TEST(PositionsInEncoderTest, ATablesRowZeroIsForTheFirstTokenWhateverTheModelsFirstPosition) {
  const auto model = learned_model(2);
  const TokenIds ids = random_ids(*model, 8, 1);
  PositionTable own = {
      .rows = kRows, .d_model = 18, .values = model->weights().position_table.to_float()};
  own.values.erase(own.values.begin(), own.values.begin() + 2 * 18);
  Encoder encoder(model);
  const Encoding replaced = encoder.encode_ids(ids, {.positions = Positions::table(own)});
  EXPECT_EQ(replaced.positions[0], 0);
  expect_same_bits(replaced[0].hidden, hidden_of(encoder.encode_ids(ids)), "own table given again");
}

TEST(PositionEditsTest, MoveThePositionsTheyNameInTheOrderGiven) {
  const Positions own;
  for (const auto& [positions, expected] : std::vector<std::pair<Positions, std::vector<float>>>{
           {own, {0, 1, 2, 3, 4}},
           {own.shifted(3), {3, 4, 5, 6, 7}},
           {own.swapped(1, 4), {0, 4, 2, 3, 1}},
           {own.reversed(), {4, 3, 2, 1, 0}},
           {own.repeated(), {0, 0, 0, 0, 0}},
           {own.at({9, 0, 9, 11, 2}), {9, 0, 9, 11, 2}},
           {own.shifted(2).at({0, 1, 2, 3, 4}), {0, 1, 2, 3, 4}},
           {own.at({0, 1, 2, 3, 4}).shifted(2), {2, 3, 4, 5, 6}},
           {own.reversed().repeated(), {4, 4, 4, 4, 4}}}) {
    EXPECT_EQ(edited(positions), expected);
  }
}

TEST(PositionEditsTest, LeaveTheOriginalValueAlone) {
  const Positions positions = Positions().shifted(1);
  const Positions more = positions.reversed();
  EXPECT_EQ(positions.edits().size(), 1u);
  EXPECT_EQ(more.edits().size(), 2u);
  EXPECT_EQ(positions.scaled(3).scale(), 3.0f);
  EXPECT_EQ(positions.scale(), 1.0f);
}

TEST(PositionEditsTest, ShufflesAreReproduciblePermutations) {
  const std::vector<float> once = edited(Positions().shuffled(5), 12);
  EXPECT_EQ(edited(Positions().shuffled(5), 12), once);
  EXPECT_NE(edited(Positions().shuffled(6), 12), once);
  EXPECT_EQ(std::set<float>(once.begin(), once.end()).size(), 12u);
  EXPECT_FALSE(std::is_sorted(once.begin(), once.end()));
  EXPECT_EQ(edited(Positions().shuffled(5), 1), std::vector<float>{0});
}

TEST(PositionEditsTest, AveragedEveryTokenGetsTheMeanOverTheTrainedLength) {
  const auto table = drawn_table(20, 7);
  for (const int64_t first : {0, 2}) {
    const auto learned = learned_model(first);
    const auto computed = model_with({.kind = PositionKind::kSinusoidal, .first_position = first});
    for (const auto& [model, positions] :
         {std::pair(learned, Positions()), std::pair(computed, Positions()),
          std::pair(learned, Positions::table(table))}) {
      const std::vector<float> rows = model->position_vectors(kRows, positions);
      std::vector<double> mean(18);
      for (size_t i = 0; i < rows.size(); ++i) mean[i % 18] += rows[i] / static_cast<double>(kRows);
      // The same for any text, wherever its tokens are moved to.
      const std::vector<float> averaged =
          model->position_vectors(5, positions.shifted(3).averaged().scaled(2));
      ASSERT_EQ(averaged.size(), 5u * 18);
      for (size_t i = 0; i < averaged.size(); ++i) {
        EXPECT_NEAR(averaged[i], 2 * mean[i % 18], 1e-6) << i;
      }
    }
  }
}

TEST(PositionEditsTest, WhatCannotBeDoneIsAnErrorThatNamesTheValue) {
  const auto model = learned_model();
  Encoder encoder(model);
  const TokenIds ids = random_ids(*model, 5, 1);
  const auto expect_refused = [&](const Positions& positions,
                                  const std::vector<std::string>& words) {
    expect_error<InvalidArgument>([&] { encoder.encode_ids(ids, {.positions = positions}); },
                                  words);
    EXPECT_EQ(encoder.encode_ids(ids).token_ids.size(), 5u) << "usable after the error";
  };
  expect_refused(Positions().shifted(8), {"12", "11"});
  expect_refused(Positions().shifted(-1), {"-1", "11"});
  expect_refused(Positions().at({0, 1, 2, 3, 500}), {"500", "11"});
  expect_refused(Positions().at({0, 1, 2}), {"3", "5"});
  expect_refused(Positions().swapped(0, 5), {"5", "4"});
  expect_refused(Positions().swapped(-2, 0), {"-2"});
  const PositionTable narrow = {.rows = 5, .d_model = 17, .values = std::vector<float>(5 * 17)};
  expect_refused(Positions::table(narrow), {"17", "18"});

  const auto expect_refused_by = [](const std::shared_ptr<const Model>& other,
                                    const std::vector<TokenIds>& batch, const Positions& positions,
                                    const std::vector<std::string>& words) {
    expect_error<InvalidArgument>(
        [&] { Encoder(other).encode_ids(batch, {.positions = positions}); }, words);
  };
  expect_refused_by(model, {{1, 2}, {3, 4}}, Positions().at({0, 1}), {"2"});  // one sequence's
  expect_refused_by(model_with({}), {{1}}, Positions::learned(), {"table", "none"});
  expect_refused_by(random_model(small_config(), 42), {{1}},  // 15 wide
                    Positions::sinusoidal(SinusoidalLayout::kOpenNmt), {"opennmt", "15"});
}

TEST(OverflowTest, ErrorNamesBothLengthsAndTheWayOut) {
  for (const int64_t first : {0, 2}) {
    const auto model = learned_model(first);
    Encoder encoder(model);
    EXPECT_EQ(encoder.model().max_tokens(), kRows);
    EXPECT_EQ(encoder.encode_ids(random_ids(*model, 12, 1)).token_ids.size(), 12u);
    expect_error<InvalidArgument>([&] { encoder.encode_ids(random_ids(*model, 17, 1)); },
                                  {"17", "12", "truncate", "clamp", "interpolate", "window"});
    EXPECT_EQ(encoder.encode_ids(random_ids(*model, 12, 1)).token_ids.size(), 12u);
  }
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
         {Overflow::kTruncate, Overflow::kClamp, Overflow::kInterpolate, Overflow::kWindow}) {
      expect_same_bits(hidden_of(encoder.encode_ids(ids, {.overflow = overflow})),
                       expected[0].hidden, std::string(to_string(overflow)));
    }
  }
  const auto learned = learned_model();
  const Encoder encoder(learned);
  EXPECT_EQ(encoder.model().max_tokens(Positions::none()), std::nullopt);
  EXPECT_EQ(encoder.model().max_tokens(Positions::table(drawn_table(7, 1))), 7);
}

TEST(OverflowTest, EveryPolicyMatchesTheReferenceAndEachSequenceAlone) {
  const auto model = learned_model(3);
  const std::vector<TokenIds> batch = {random_ids(*model, 5, 1), random_ids(*model, 12, 2),
                                       random_ids(*model, 13, 3), random_ids(*model, 26, 4),
                                       random_ids(*model, 42, 5)};
  for (const auto overflow :
       {Overflow::kTruncate, Overflow::kClamp, Overflow::kInterpolate, Overflow::kWindow}) {
    SCOPED_TRACE(to_string(overflow));
    expect_matches_reference(model, batch, {.overflow = overflow});
    expect_matches_reference(model, batch,
                             {.positions = Positions().reversed(), .overflow = overflow});
    Encoder encoder(model, {.threads = 2});
    const Encoding together = encoder.encode_ids(batch, {.overflow = overflow});
    for (size_t i = 0; i < batch.size(); ++i) {
      const Encoding alone = encoder.encode_ids(batch[i], {.overflow = overflow});
      expect_same_bits(together[i].hidden, alone[0].hidden, "alone");
    }
  }
  const RunOptions one_row = {.positions = Positions::table(drawn_table(1, 9)),
                              .overflow = Overflow::kWindow};
  expect_matches_reference(model, {random_ids(*model, 4, 1)}, one_row);
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

}  // namespace
}  // namespace phasor
