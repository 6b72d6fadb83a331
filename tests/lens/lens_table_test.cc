// Measures of a table of position vectors against what is known of sinusoids and other exact
// tables.
#include "tests/support/encoder_cases.h"
#include "tests/support/tables.h"

namespace phasor {
namespace {

/// Row i is e_i + … + e_{i+width−1}: rows have in common what they overlap.
std::vector<double> band_table(int64_t rows, int64_t width) {
  const int64_t d_model = rows + width - 1;
  std::vector<double> table(rows * d_model);
  for (int64_t i = 0; i < rows; ++i) std::fill_n(&table[i * d_model + i], width, 1.0);
  return table;
}

TEST(ToeplitzTest, ARampHasTheKnownShare) {
  // P_i = i, M_ij = ij over i, j = 0, 1, 2. Off the main diagonal: (0, 2) and (0) each way, mean
  // 2/3. Within the diagonals Σ squares = 2·(1 + 1) = 4; in all 8 − 6·4/9 = 16/3.
  EXPECT_NEAR(toeplitz_r2(std::vector<double>{0, 1, 2}, 1), 1 - 4 / (16.0 / 3), 1e-15);
}

TEST(ToeplitzTest, RandomRowsAreNotTranslationInvariantButBandsAre) {
  EXPECT_LT(toeplitz_r2(random_table(128 * 64, 3), 64), 0.1);
  EXPECT_NEAR(toeplitz_r2(band_table(9, 3), 11), 1.0, 1e-15);
  EXPECT_EQ(toeplitz_r2(band_table(9, 1), 9), 1.0);                       // nothing in common
  EXPECT_EQ(toeplitz_r2(std::vector<double>{1, 2}, 2), 1.0);              // one row
  EXPECT_EQ(toeplitz_r2(std::vector<double>{1, 2, 1, 2, 1, 2}, 2), 1.0);  // equal rows
}

TEST(TableTest, RowsThatDifferByRoundingAreEqual) {
  std::vector<double> table = random_table(24 * 6, 5), larger = table;
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<double>(i % 6) - 2.5 + 1e-9 * table[i];
    larger[i] = static_cast<double>(i % 6) - 2.5 + 1e-4 * larger[i];
  }
  std::vector<double> equal(24 * 6);
  for (size_t i = 0; i < equal.size(); ++i) equal[i] = static_cast<double>(i % 6) - 2.5;
  EXPECT_EQ(toeplitz_r2(table, 6), 1);
  EXPECT_EQ(mirror_likeness(table, 6), mirror_likeness(equal, 6));
  EXPECT_EQ(neighbour_likeness(table, 6), neighbour_likeness(equal, 6));
  EXPECT_LT(toeplitz_r2(larger, 6), 0.5);  // random rows beside their mean
  EXPECT_LT(mirror_likeness(larger, 6), 0.9);
}

TEST(NeighbourLikenessTest, IsOneWhereOnlyNextNeighboursAreAlike) {
  EXPECT_DOUBLE_EQ(neighbour_likeness(band_table(12, 2), 13), 1.0);
  // Overlaps 2 and 1 at offsets 1 and 2: an inner row has (2·2·1 + 2·1·½) / 6 = 5/6, the first two
  // and the last two (2·1 + 1·½) / 3 = 5/6 and (2·2·1 + 1·½) / 5 = 9/10.
  EXPECT_NEAR(neighbour_likeness(band_table(10, 3), 12), (8 * 5.0 / 6 + 2 * 0.9) / 10, 1e-15);
  EXPECT_EQ(neighbour_likeness(std::vector<double>{1, 2}, 2), 0.0);
}

TEST(NeighbourLikenessTest, DoesNotDependOnTheScaleOfTheTable) {
  const std::vector<double> table = random_table(20 * 8, 4);
  std::vector<double> larger = table;
  for (double& value : larger) value *= 4;  // exact
  EXPECT_DOUBLE_EQ(neighbour_likeness(larger, 8), neighbour_likeness(table, 8));
  EXPECT_DOUBLE_EQ(mirror_likeness(larger, 8), mirror_likeness(table, 8));
}

TEST(MirrorLikenessTest, SinusoidsAreSymmetricAndARampIsNot) {
  EXPECT_NEAR(mirror_likeness(sinusoidal_table(SinusoidalLayout::kPaper, 40, 64), 64), 1.0, 1e-12);
  // P_i = i over 0, 1, 2: row 1 of M is (0, ·, 2), of W (0, 0, 1): |0 − 1| / 1 = 1.
  EXPECT_NEAR(mirror_likeness(std::vector<double>{0, 1, 2}, 1), 0.0, 1e-15);
  EXPECT_EQ(mirror_likeness(std::vector<double>{1, 2, 3, 4}, 2), 1.0);  // no row has two sides
}

TEST(LensTableTest, ShapesThatDoNotFitAreRefused) {
  const std::vector<double> six(6, 1.0);
  for (const int64_t d_model : {4, 0, -1}) {
    EXPECT_THROW(toeplitz_r2(six, d_model), InvalidArgument);
    EXPECT_THROW(neighbour_likeness(six, d_model), InvalidArgument);
    EXPECT_THROW(mirror_likeness(six, d_model), InvalidArgument);
    EXPECT_THROW(row_matrix(six, d_model, RowMeasure::kEuclidean), InvalidArgument);
    EXPECT_THROW(dot_product_by_offset(six, d_model), InvalidArgument);
    EXPECT_THROW(first_rise(six, d_model), InvalidArgument);
    EXPECT_THROW(nearest_rows(six, d_model), InvalidArgument);
    EXPECT_THROW(local_monotonicity(six, d_model), InvalidArgument);
    EXPECT_THROW(linear_shift(six, d_model, 1), InvalidArgument);
    EXPECT_THROW(column_peaks(six, d_model), InvalidArgument);
    EXPECT_THROW(linear_cka(six, 2, six, d_model), InvalidArgument);
    EXPECT_THROW(procrustes_distance(six, d_model, six, 2), InvalidArgument);
    EXPECT_THROW(stable_rank(six, d_model), InvalidArgument);
    EXPECT_THROW(principal_plane(six, d_model), InvalidArgument);
    EXPECT_THROW(stationary_tables(six, d_model, 1), InvalidArgument);
  }
  EXPECT_THROW(toeplitz_r2({}, 2), InvalidArgument);
}

TEST(LensTableTest, OneRowIsATableToo) {
  const std::vector<double> row = {3, 0, 4};
  EXPECT_EQ(row_matrix(row, 3, RowMeasure::kDotProduct), std::vector<double>{25});
  EXPECT_EQ(row_matrix(row, 3, RowMeasure::kCosineDistance), std::vector<double>{0});
  EXPECT_EQ(dot_product_by_offset(row, 3), std::vector<double>{25});
  EXPECT_EQ(local_monotonicity(row, 3).steps, 0);
  EXPECT_EQ(column_peaks(row, 3).size(), 3u);
  EXPECT_EQ(stable_rank(row, 3), 0);
  EXPECT_EQ(linear_cka(row, 3, row, 3), 0);
  EXPECT_EQ(procrustes_distance(row, 3, row, 3), 1);
  EXPECT_EQ(principal_plane(row, 3).points, std::vector<double>(2));
}

TEST(PositionVectorsTest, AreWhatARunAddsToItsTokens) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const auto model = drawn_model(seed);
    TokenIds ids = random_ids(*model, 9, seed);
    for (int32_t& id : ids) {  // all of them advance the position counter
      if (id == model->config().position.uncounted_token) id = 40;
    }
    Recorder recorder({Hook::kPosEmbed});
    Encoder encoder(model);
    const RunOptions options = {.observer = &recorder,
                                .positions = Positions().shifted(1).scaled(0.5f)};
    encoder.encode_ids(ids, options);
    const std::vector<float> vectors =
        encoder.model().position_vectors(9, options.positions, options.overflow);
    const PositionKind kind = model->config().position.kind;
    if (kind == PositionKind::kNone) {
      EXPECT_EQ(vectors, std::vector<float>(9 * model->config().embedding_width()));
    } else {
      EXPECT_EQ(vectors, recorder.values(Hook::kPosEmbed)) << "seed " << seed;
    }
  }
}

TEST(PositionVectorsTest, LengthsOutsideTheTableAreRefused) {
  ModelConfig config = small_config();
  config.position.kind = PositionKind::kLearned;
  const Encoder encoder(random_model(config, 1));
  EXPECT_EQ(encoder.model().position_vectors(12).size(), 12u * 15u);
  EXPECT_THROW(encoder.model().position_vectors(13), InvalidArgument);
  EXPECT_THROW(encoder.model().position_vectors(0), InvalidArgument);
  const std::vector<float> clamped = encoder.model().position_vectors(13, {}, Overflow::kClamp);
  EXPECT_TRUE(std::equal(clamped.end() - 15, clamped.end(), clamped.end() - 30));
}

}  // namespace
}  // namespace phasor
