// Measures of tables of position vectors against closed forms of the sinusoid and other exact
// tables.
#include <complex>

#include "tests/support/encoder_cases.h"

namespace phasor {
namespace {

/// Values from −1 to 1.
std::vector<double> random_table(int64_t count, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<double> values(count);
  for (double& value : values) value = static_cast<double>(rng() % 2001) / 1000.0 - 1.0;
  return values;
}

/// The bundled learned model's table, [128, 128].
std::vector<double> learned_table() {
  const std::vector<float> values =
      Model::load(bundled_model("learned"))->weights().position_table.to_float();
  return {values.begin(), values.end()};
}

/// Every row mirrored at the plane that a random vector stands on: an orthogonal map.
std::vector<double> reflected(std::vector<double> table, int64_t d_model, uint64_t seed) {
  const std::vector<double> v = random_table(d_model, seed);
  double length = 0;
  for (const double x : v) length += x * x;
  for (size_t r = 0; r < table.size(); r += d_model) {
    double along = 0;
    for (int64_t c = 0; c < d_model; ++c) along += table[r + c] * v[c];
    for (int64_t c = 0; c < d_model; ++c) table[r + c] -= 2 * along / length * v[c];
  }
  return table;
}

/// Row i is e_i + … + e_{i+width−1}: rows have in common what they overlap.
std::vector<double> band_table(int64_t rows, int64_t width) {
  const int64_t d_model = rows + width - 1;
  std::vector<double> table(rows * d_model);
  for (int64_t i = 0; i < rows; ++i) std::fill_n(&table[i * d_model + i], width, 1.0);
  return table;
}

TEST(ToeplitzTest, RandomRowsAreNotTranslationInvariantButBandsAreAndARampHasTheKnownShare) {
  EXPECT_LT(toeplitz_r2(random_table(128 * 64, 3), 64), 0.1);
  EXPECT_NEAR(toeplitz_r2(band_table(9, 3), 11), 1.0, 1e-15);
  EXPECT_EQ(toeplitz_r2(band_table(9, 1), 9), 1.0);                       // nothing in common
  EXPECT_EQ(toeplitz_r2(std::vector<double>{1, 2}, 2), 1.0);              // one row
  EXPECT_EQ(toeplitz_r2(std::vector<double>{1, 2, 1, 2, 1, 2}, 2), 1.0);  // equal rows
  // P_i = i, M_ij = ij over i, j = 0, 1, 2. Off the main diagonal: (0, 2) and (0) each way, mean
  // 2/3. Within the diagonals Σ squares = 2·(1 + 1) = 4; in all 8 − 6·4/9 = 16/3.
  EXPECT_NEAR(toeplitz_r2(std::vector<double>{0, 1, 2}, 1), 1 - 4 / (16.0 / 3), 1e-15);
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

TEST(NeighbourLikenessTest, AndMirrorLikenessAreThoseOfExactTablesAndBlindToScale) {
  EXPECT_DOUBLE_EQ(neighbour_likeness(band_table(12, 2), 13), 1.0);
  // Overlaps 2 and 1 at offsets 1 and 2: an inner row has (2·2·1 + 2·1·½) / 6 = 5/6, the first two
  // and the last two (2·1 + 1·½) / 3 = 5/6 and (2·2·1 + 1·½) / 5 = 9/10.
  EXPECT_NEAR(neighbour_likeness(band_table(10, 3), 12), (8 * 5.0 / 6 + 2 * 0.9) / 10, 1e-15);
  EXPECT_EQ(neighbour_likeness(std::vector<double>{1, 2}, 2), 0.0);
  const std::vector<double> table = random_table(20 * 8, 4);
  std::vector<double> larger = table;
  for (double& value : larger) value *= 4;  // exact
  EXPECT_DOUBLE_EQ(neighbour_likeness(larger, 8), neighbour_likeness(table, 8));
  EXPECT_DOUBLE_EQ(mirror_likeness(larger, 8), mirror_likeness(table, 8));
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
    for (const Positions& positions :
         {Positions().shifted(1).scaled(0.5f), Positions().shifted(1).averaged().scaled(2)}) {
      Recorder recorder({Hook::kPosEmbed});
      Encoder(model).encode_ids(ids, {.observer = &recorder, .positions = positions});
      const std::vector<float> vectors = model->position_vectors(9, positions);
      if (model->config().position.kind == PositionKind::kNone) {
        EXPECT_EQ(vectors, std::vector<float>(9 * model->config().embedding_width()));
      } else {
        EXPECT_EQ(vectors, recorder.values(Hook::kPosEmbed)) << "seed " << seed;
      }
    }
  }
}

using enum SinusoidalLayout;

/// Σ_i cos(ω_i δ) over the d/2 frequencies of a layout, in the words of the papers.
double closed_form(SinusoidalLayout layout, int64_t d_model, double base, double offset) {
  const auto pairs = static_cast<double>(d_model / 2);
  const double steps = layout == kPaper || layout == kMarian ? pairs : pairs - 1;
  double sum = 0;
  for (double i = 0; i < pairs; ++i)
    sum += std::cos(offset * std::exp(-i / steps * std::log(base)));
  return sum;
}

TEST(ColumnPairsTest, ALoneColumnIsASineThatCannotBeTurnedOrNone) {
  EXPECT_EQ(column_pairs(kPaper, 5).back().cosine, -1);
  EXPECT_EQ(column_pairs(kMarian, 5).back().cosine, -1);
  EXPECT_EQ(column_pairs(kT2T, 5).size(), 2u);
  EXPECT_THROW(column_pairs(kOpenNmt, 5), InvalidArgument);
  EXPECT_THROW(rotation(kPaper, 5, 1), InvalidArgument);
  EXPECT_THROW(rotation(kMarian, 5, 1), InvalidArgument);
  EXPECT_THROW(rotation(kOpenNmt, 5, 1), InvalidArgument);
}

TEST(RowMatrixTest, TheThreeMeasuresAgreeAndARowOfZerosHasCosineDistanceOne) {
  for (const std::vector<double>& table : {random_table(20 * 128, 5), learned_table()}) {
    const auto rows = static_cast<int64_t>(table.size()) / 128;
    const auto dots = row_matrix(table, 128, RowMeasure::kDotProduct);
    const auto cosines = row_matrix(table, 128, RowMeasure::kCosineDistance);
    const auto lengths = row_matrix(table, 128, RowMeasure::kEuclidean);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < rows; ++j) {
        const double own = dots[i * rows + i], others = dots[j * rows + j];
        const double both = dots[i * rows + j], length = lengths[i * rows + j];
        const double* const row = &table[i * 128];
        EXPECT_NEAR(both, std::inner_product(row, row + 128, &table[j * 128], 0.0), 1e-10);
        EXPECT_NEAR(length * length, own + others - 2 * both, 1e-9 * (own + others));
        EXPECT_NEAR(cosines[i * rows + j], 1 - both / std::sqrt(own * others), 1e-12);
        EXPECT_EQ(length, lengths[j * rows + i]);
      }
    }
  }
  const std::vector<double> expected = {1, 1, 1, 0};
  EXPECT_EQ(row_matrix(std::vector<double>{0, 0, 0, 3}, 2, RowMeasure::kCosineDistance), expected);
}

TEST(DotProductByOffsetTest, IsTheMeanOfEachDiagonal) {
  const std::vector<double> table = learned_table();
  const std::vector<double> dots = row_matrix(table, 128, RowMeasure::kDotProduct);
  const std::vector<double> means = dot_product_by_offset(table, 128);
  ASSERT_EQ(means.size(), 128u);
  for (const int64_t offset : {0, 1, 77, 127}) {
    double sum = 0;
    for (int64_t i = offset; i < 128; ++i) sum += dots[i * 128 + i - offset];
    EXPECT_NEAR(means[offset], sum / static_cast<double>(128 - offset), 1e-12);
  }
}

TEST(FirstRiseTest, OfSinusoidsIsTheKnownOne) {
  const std::vector<std::array<int64_t, 2>> known = {{32, 5},   {64, 6},   {128, 12},
                                                     {256, 25}, {512, 44}, {1024, 69}};
  for (const auto& [d_model, offset] : known) {
    EXPECT_EQ(first_rise(sinusoidal_table(kPaper, 100, d_model), d_model), offset);
    EXPECT_EQ(first_rise(sinusoidal_table(kMarian, 100, d_model, 10000.0, 9), d_model), offset);
    EXPECT_EQ(first_rise(sinusoidal_table(kPaper, offset, d_model), d_model), std::nullopt);
  }
  EXPECT_EQ(first_rise(std::vector<double>{1, 2}, 2), std::nullopt);  // one row
}

TEST(NearestRowsTest, AreThoseThatWerePlaced) {
  std::vector<double> table = random_table(50 * 16, 6);
  std::copy_n(&table[7 * 16], 16, &table[31 * 16]);
  table[31 * 16 + 3] += 0.25;
  const RowPair nearest = nearest_rows(table, 16);
  EXPECT_EQ(nearest.row, 7);
  EXPECT_EQ(nearest.offset, 24);
  EXPECT_NEAR(nearest.distance, 0.25, 1e-15);
  EXPECT_GT(nearest_rows(learned_table(), 128).distance, 0);
  EXPECT_THROW(nearest_rows(std::vector<double>{1, 2}, 2), InvalidArgument);
}

TEST(LocalMonotonicityTest,
     OfASinusoidFollowsFromItsDotProductsAndRandomRowsFallAndRiseAlikeOften) {
  const Monotonicity wide = local_monotonicity(sinusoidal_table(kPaper, 60, 512), 512);
  EXPECT_EQ(wide.violations, 0);  // the first rise is at 44
  // Offsets δ → δ + 1, δ = 1 … 19, to each side, wherever both are in the table.
  int64_t steps = 0, violations = 0;
  for (int64_t offset = 1; offset < 20; ++offset) {
    const int64_t places = 2 * (60 - offset - 1);
    steps += places;
    const auto next = static_cast<double>(offset + 1);
    if (closed_form(kPaper, 64, 1e4, next) > closed_form(kPaper, 64, 1e4, next - 1)) {
      violations += places;
    }
  }
  EXPECT_EQ(wide.steps, steps);
  const Monotonicity narrow = local_monotonicity(sinusoidal_table(kPaper, 60, 64), 64);
  EXPECT_EQ(narrow.violations, violations);
  EXPECT_GT(violations, 0);
  const Monotonicity counts = local_monotonicity(random_table(400 * 64, 7), 64);
  EXPECT_NEAR(static_cast<double>(counts.violations) / static_cast<double>(counts.steps), 0.5,
              0.02);
  EXPECT_EQ(local_monotonicity(std::vector<double>{1, 2, 3}, 1).steps, 2);  // 0 → 2 and 2 → 0
  EXPECT_EQ(local_monotonicity(std::vector<double>{1, 2, 3}, 3).steps, 0);
}

using enum SinusoidalLayout;
using std::numbers::pi;

TEST(RotationTest, MovesEveryRowByAnyOffset) {
  for (const SinusoidalLayout layout : {kPaper, kMarian, kT2T, kFairseq, kOpenNmt}) {
    for (const int64_t d_model : {2, 6, 33, 64}) {
      if (d_model % 2 != 0 && layout != kT2T && layout != kFairseq) continue;
      const auto table = sinusoidal_table(layout, 30, d_model, 300.0);
      std::vector<double> want(d_model);
      for (const double offset : {0.0, 5.0, -3.0, 0.5}) {
        const auto r = rotation(layout, d_model, offset, 300.0);
        for (int64_t p = 0; p < 30; ++p) {
          sinusoidal_row(layout, 300.0, static_cast<double>(p) + offset, d_model, want.data());
          for (int64_t c = 0; c < d_model; ++c) {
            const double moved = std::inner_product(&r[c * d_model], &r[c * d_model] + d_model,
                                                    &table[p * d_model], 0.0);
            ASSERT_NEAR(moved, want[c], 1e-14) << to_string(layout) << offset;
          }
        }
      }
    }
  }
}

TEST(LinearShiftTest, OneMatrixMovesEverySinusoid) {
  for (const int64_t k : {1, 5, 20}) {
    for (const int64_t d_model : {8, 128, 300}) {
      const LinearShift shift = linear_shift(sinusoidal_table(kT2T, 128, d_model), d_model, k);
      EXPECT_NEAR(shift.fitted, 1, 1e-9) << d_model;
      EXPECT_NEAR(shift.held_out, 1, 1e-6) << d_model;
      EXPECT_LT(shift.unmoved, 0.99);
    }
  }
}

TEST(LinearShiftTest, RandomRowsAreFittedButNotFollowed) {
  const LinearShift few = linear_shift(random_table(100 * 64, 1), 64, 1);
  EXPECT_NEAR(few.fitted, 1, 1e-9);  // 50 rows in 64 dimensions
  EXPECT_LT(few.held_out, -0.5);
  EXPECT_NEAR(few.unmoved, -1, 0.1);  // twice the variance
  const LinearShift many = linear_shift(random_table(2000 * 8, 2), 8, 3);
  EXPECT_NEAR(many.fitted, 0, 0.05);
  EXPECT_NEAR(many.held_out, 0, 0.05);
}

TEST(LinearShiftTest, RowsThatDifferByRoundingAreAllMovedAndShiftsBeyondTheTableAreRefused) {
  std::vector<double> table = random_table(40 * 6, 5);
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<double>(i % 6) - 2.5 + 1e-9 * table[i];
  }
  const LinearShift shift = linear_shift(table, 6, 2);
  EXPECT_EQ(shift.fitted, 1);
  EXPECT_EQ(shift.held_out, 1);
  EXPECT_EQ(shift.unmoved, 1);
  const std::vector<double> short_table = random_table(5 * 2, 1);
  EXPECT_NO_THROW(linear_shift(short_table, 2, 3));
  for (const int64_t k : {4, 5, 0, -1})
    EXPECT_THROW(linear_shift(short_table, 2, k), InvalidArgument);
}

/// The columns as a table, each with length T.
std::vector<double> table_of(const std::vector<std::vector<double>>& columns) {
  std::vector<double> table(columns.size() * columns.front().size());
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = columns[i % columns.size()][i / columns.size()];
  }
  return table;
}

std::vector<double> wave(int64_t length, double cycles, double phase = 0, double amplitude = 1) {
  std::vector<double> values(length);
  for (int64_t t = 0; t < length; ++t) {
    const double turn = static_cast<double>(t) / static_cast<double>(length);
    values[t] = amplitude * std::sin(2 * pi * cycles * turn + phase);
  }
  return values;
}

TEST(ColumnPeaksTest, RoundingHasNoPeakAndASmallSineHas) {
  constexpr int64_t kLength = 64;
  const std::vector<double> noise = random_table(kLength, 10);
  std::vector<double> nearly(kLength), stored(kLength);
  for (int64_t t = 0; t < kLength; ++t) {
    nearly[t] = 1 + 1e-9 * noise[t];
    stored[t] = std::nextafter(0.3f, noise[t] < 0 ? 0.0f : 1.0f);
  }
  const std::vector<double> constant(kLength, 0.3);
  std::vector<double> small = wave(kLength, 5, 0.2, 1e-5);
  for (double& value : small) value = static_cast<float>(1 + value);
  const auto peaks =
      column_peaks(table_of({nearly, stored, constant, small, wave(kLength, 7, 0.1, 1e-9)}), 5);
  for (const int c : {0, 1, 2}) {
    EXPECT_EQ(peaks[c].cycles, 0) << c;
    EXPECT_EQ(peaks[c].share, 0) << c;
  }
  EXPECT_EQ(peaks[3].cycles, 5);
  EXPECT_GT(peaks[3].share, 0.99);
  EXPECT_EQ(peaks[4].cycles, 7);
  EXPECT_NEAR(peaks[4].share, 1, 1e-12);
}

TEST(ColumnPeaksTest, OfASlowSinusoidInFloat32AreThoseInDouble) {
  for (const int64_t rows : {8, 16, 32, 128}) {
    for (const double base : {1e4, 1e6, 1e8}) {  // from cos(1e-4 p) on, columns come close to 1
      const std::vector<double> table = sinusoidal_table(kPaper, rows, 64, base);
      std::vector<double> rounded = table;
      for (double& value : rounded) value = static_cast<float>(value);
      const auto exact = column_peaks(table, 64), stored = column_peaks(rounded, 64);
      double both = 0, sum = 0, sum_stored = 0;
      for (int64_t c = 0; c < 64; ++c) {
        both += exact[c].variance;
        sum += exact[c].share * exact[c].variance;
        sum_stored += stored[c].share * stored[c].variance;
        if (exact[c].cycles == 0 || stored[c].cycles == 0) {  // within rounding of the limit
          EXPECT_LT(exact[c].variance, 4 * std::pow(2.0, -46));
          continue;
        }
        EXPECT_EQ(exact[c].cycles, stored[c].cycles) << rows << " " << base << " " << c;
        const double units = std::sqrt(exact[c].variance) / std::pow(2.0, -23);  // k: |values| ≤ 1
        EXPECT_NEAR(exact[c].share, stored[c].share, 0.3 / units + 1e-6) << rows << " " << c;
      }
      EXPECT_NEAR(sum / both, sum_stored / both, 1e-6) << rows << " " << base;
    }
  }
}

TEST(ColumnPeaksTest, AreThoseOfTheDefinition) {
  for (const int64_t length : {1, 2, 3, 16, 37}) {
    const std::vector<double> column = random_table(length, 8);
    double energy = 0, strongest = 0;
    int64_t cycles = 0;
    for (int64_t f = 1; f < length; ++f) {  // both halves: f and length − f are one frequency
      std::complex<double> sum = 0;
      for (int64_t t = 0; t < length; ++t) {
        sum += column[t] * std::polar(1.0, -2 * pi * static_cast<double>(f * t % length) /
                                               static_cast<double>(length));
      }
      energy += std::norm(sum);
      const double power = std::norm(sum) * (2 * f == length ? 1 : 2);
      if (2 * f <= length && power > strongest) {
        strongest = power;
        cycles = f;
      }
    }
    const ColumnPeak peak = column_peaks(column, 1).front();
    EXPECT_EQ(peak.cycles, cycles) << length;
    EXPECT_NEAR(peak.share, energy > 0 ? strongest / energy : 0, 1e-12) << length;
    const auto count = static_cast<double>(length);  // Parseval
    EXPECT_NEAR(peak.variance, energy / (count * count), 1e-12) << length;
  }
}

TEST(TwoTablesTest, RotationScaleAndShiftMakeNoDifference) {
  for (const std::vector<double>& table : {random_table(20 * 128, 1), learned_table()}) {
    std::vector<double> moved = reflected(reflected(table, 128, 2), 128, 3);
    for (size_t i = 0; i < moved.size(); ++i)
      moved[i] = 3 * moved[i] + static_cast<double>(i % 128);
    EXPECT_NEAR(linear_cka(table, 128, moved, 128), 1, 1e-12);
    EXPECT_NEAR(procrustes_distance(table, 128, moved, 128), 0, 1e-12);
  }
}

TEST(TwoTablesTest, OfOneColumnAreAsAlikeAsTheirCorrelation) {
  const std::vector<double> a = {1, 2, 3, 6}, b = {2, 1, 5, 4};
  // Without their means 3: (−2, −1, 0, 3) and (−1, −2, 2, 1): ⟨a, b⟩ = 7, ‖a‖² = 14, ‖b‖² = 10.
  EXPECT_NEAR(linear_cka(a, 1, b, 1), 49.0 / 140, 1e-15);
  EXPECT_NEAR(procrustes_distance(a, 1, b, 1), 1 - 49.0 / 140, 1e-15);
}

TEST(TwoTablesTest, LikenessIsThatOfTheGramMatrices) {
  constexpr int64_t kRows = 12;
  const std::vector<double> a = random_table(kRows * 5, 4), b = random_table(kRows * 9, 5);
  const auto gram = [](std::vector<double> x, int64_t width) {  // centred on both sides
    for (int64_t c = 0; c < width; ++c) {
      double mean = 0;
      for (int64_t r = 0; r < kRows; ++r) mean += x[r * width + c] / kRows;
      for (int64_t r = 0; r < kRows; ++r) x[r * width + c] -= mean;
    }
    return row_matrix(x, width, RowMeasure::kDotProduct);
  };
  const std::vector<double> k = gram(a, 5), l = gram(b, 9);
  const auto inner = [](const std::vector<double>& x, const std::vector<double>& y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
  };
  const double expected = inner(k, l) / std::sqrt(inner(k, k) * inner(l, l));
  EXPECT_NEAR(linear_cka(a, 5, b, 9), expected, 1e-12);
  EXPECT_NEAR(linear_cka(b, 9, a, 5), expected, 1e-12);
  EXPECT_NEAR(procrustes_distance(a, 5, b, 9), procrustes_distance(b, 9, a, 5), 1e-12);
  EXPECT_GT(linear_cka(random_table(10 * 2000, 6), 2000, random_table(10 * 2000, 7), 2000), 0.95);
}

TEST(TwoTablesTest, ColumnsAtRightAnglesHaveNothingInCommon) {
  const auto a = table_of({wave(32, 3)}), b = table_of({wave(32, 5), wave(32, 8)});
  EXPECT_NEAR(linear_cka(a, 1, b, 2), 0, 1e-15);
  EXPECT_NEAR(procrustes_distance(a, 1, b, 2), 1, 1e-15);
  const std::vector<double> constant(32, 0.1);
  EXPECT_EQ(linear_cka(a, 1, constant, 1), 0);
  EXPECT_EQ(procrustes_distance(a, 1, constant, 1), 1);
  std::vector<double> nearly = random_table(32, 11);
  for (double& value : nearly) value = 0.1 + 1e-10 * value;
  EXPECT_EQ(linear_cka(a, 1, nearly, 1), 0);
  EXPECT_EQ(procrustes_distance(a, 1, nearly, 1), 1);
  EXPECT_THROW(linear_cka(a, 1, a, 2), InvalidArgument);
  EXPECT_THROW(procrustes_distance(a, 1, a, 2), InvalidArgument);
}

TEST(StableRankTest, CountsTheDirectionsInWhichRowsVary) {
  // Rows (±3, 0) and (0, ±4) have mean 0: σ² = 18 and 32.
  const std::vector<double> crossing = {3, 0, -3, 0, 0, 4, 0, -4};
  EXPECT_NEAR(stable_rank(crossing, 2), 50.0 / 32, 1e-14);
  std::vector<double> moved = crossing;
  for (double& value : moved) value += 1000;
  EXPECT_NEAR(stable_rank(moved, 2), 50.0 / 32, 1e-10);
  EXPECT_NEAR(stable_rank(std::vector<double>{1, 2, 2, 4, 3, 6}, 2), 1, 1e-12);  // on one line
  std::vector<double> identity(7 * 9);
  for (int64_t i = 0; i < 7; ++i) identity[i * 9 + i] = 2;
  EXPECT_NEAR(stable_rank(identity, 9), 6, 1e-12);  // a simplex
  EXPECT_NEAR(stable_rank(reflected(identity, 9, 1), 9), 6, 1e-12);
  EXPECT_EQ(stable_rank(std::vector<double>(6, 0.3), 2), 0);
}

/// Σ over tables of Z Zᵀ, divided by their number: [T, T].
std::vector<double> mean_gram(const std::vector<std::vector<double>>& tables, int64_t d_model) {
  std::vector<double> sum;
  for (const std::vector<double>& table : tables) {
    const std::vector<double> gram = row_matrix(table, d_model, RowMeasure::kDotProduct);
    sum.resize(gram.size());
    for (size_t i = 0; i < gram.size(); ++i) {
      sum[i] += gram[i] / static_cast<double>(tables.size());
    }
  }
  return sum;
}

TEST(StationaryTablesTest, HaveTheGramMatrixOfASinusoidOnAverage) {
  const std::vector<double> table = sinusoidal_table(kPaper, 12, 16);
  const std::vector<double> mean = mean_gram(stationary_tables(table, 16, 2000), 16);
  const std::vector<double> expected = row_matrix(table, 16, RowMeasure::kDotProduct);
  // Of one table, the deviation of an entry is at most 8·√(2/16) (Isserlis): five such of a mean.
  EXPECT_LT(largest_difference(mean, expected), 5 * 8 * std::sqrt(2.0 / 16) / std::sqrt(2000));
  // A wrong divisor, kernel or order would be seen: the entries themselves go from 8 to about 4.
  EXPECT_GT(expected[0] - *std::min_element(expected.begin(), expected.end()), 3);
}

TEST(StationaryTablesTest, LeaveOutWhatNoProcessCanHave) {
  // D = 11/3, 3, 1 of P = 1, 3, 1. Its Toeplitz matrix has the eigenvalue D_0 − D_2 = 8/3 on
  // (1, 0, −1)/√2, and those of [14/3 3√2; 3√2 11/3] on (1, 0, 1)/√2 and (0, 1, 0), one negative.
  const double half = (14.0 / 3 - 11.0 / 3) / 2, root = std::hypot(half, 3 * std::sqrt(2.0));
  const double largest = 25.0 / 6 + root;
  ASSERT_LT(25.0 / 6 - root, 0);
  const double scale = 11 / (8.0 / 3 + largest);
  const double angle = std::atan2(3 * std::sqrt(2.0), half) / 2;  // of the eigenvector
  const double a = std::cos(angle) / std::sqrt(2.0), b = std::sin(angle);
  const std::vector<double> v = {a, b, a};
  const std::vector<double> mean = mean_gram(stationary_tables({{1.0, 3.0, 1.0}}, 1, 40000), 1);
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      const double other = (i == 1 || j == 1) ? 0 : (i == j ? 0.5 : -0.5);
      const double expected = scale * (largest * v[i] * v[j] + 8.0 / 3 * other);
      EXPECT_NEAR(mean[i * 3 + j], expected, 5 * 5 * std::sqrt(2.0 / 40000)) << i << j;
    }
  }
}

TEST(StationaryTablesTest, DependOnProductsAndSeedAlone) {
  const std::vector<double> table = random_table(20 * 6, 5);
  const auto drawn = stationary_tables(table, 6, 3, 7);
  ASSERT_EQ(drawn.size(), 3u);
  EXPECT_EQ(drawn, stationary_tables(table, 6, 3, 7));
  EXPECT_EQ(drawn[0], stationary_tables(table, 6, 1, 7)[0]);
  EXPECT_GT(largest_difference(drawn[0], drawn[1]), 0.1);
  EXPECT_GT(largest_difference(drawn[0], stationary_tables(table, 6, 1, 8)[0]), 0.1);
  EXPECT_LT(largest_difference(drawn[0], stationary_tables(reflected(table, 6, 1), 6, 1, 7)[0]),
            1e-6);
  std::vector<double> doubled = table;
  for (double& value : doubled) value *= 2;
  std::vector<double> expected = drawn[2];
  for (double& value : expected) value *= 2;
  EXPECT_LT(largest_difference(stationary_tables(doubled, 6, 3, 7)[2], expected), 1e-12);
}

TEST(StationaryTablesTest, OfZerosAreZerosAndOfEqualRowsHaveEqualRows) {
  EXPECT_EQ(stationary_tables(std::vector<double>(6), 2, 1).front(), std::vector<double>(6));
  const auto equal = stationary_tables(std::vector<double>(5 * 3, 0.5), 3, 1).front();
  EXPECT_LT(nearest_rows(equal, 3).distance, 1e-7);
  EXPECT_GT(std::abs(equal[0]), 1e-3);
  EXPECT_EQ(stationary_tables(std::vector<double>{3, 4}, 2, 1).front().size(), 2u);
}

TEST(PrincipalPlaneTest, OfAFlatTableKeepsEveryDistance) {
  for (const int64_t rows : {5, 40}) {  // fewer and more rows than columns
    const std::vector<double> flat = random_table(rows * 2, 2);
    std::vector<double> table(rows * 20);
    for (int64_t i = 0; i < rows * 2; ++i) table[i / 2 * 20 + 3 + i % 2] = flat[i];
    const PlaneMap map = principal_plane(reflected(table, 20, 3), 20);
    EXPECT_LT(largest_difference(row_matrix(map.points, 2, RowMeasure::kEuclidean),
                                 row_matrix(flat, 2, RowMeasure::kEuclidean)),
              1e-12);
    EXPECT_NEAR(map.share[0] + map.share[1], 1, 1e-12);
    EXPECT_GE(map.share[0], map.share[1]);
    EXPECT_GT(map.points[0], 0);
    EXPECT_GT(map.points[1], 0);
  }
}

TEST(PrincipalPlaneTest, DoesNotDependOnTheTablesOrientation) {
  for (const std::vector<double>& table : {learned_table(), sinusoidal_table(kPaper, 50, 128)}) {
    const PlaneMap map = principal_plane(table, 128),
                   turned = principal_plane(reflected(table, 128, 4), 128);
    EXPECT_LT(largest_difference(map.points, turned.points), 1e-9);
    EXPECT_NEAR(map.share[0], turned.share[0], 1e-12);
  }
}

TEST(PrincipalPlaneTest, OfEqualRowsIsOnePoint) {
  const PlaneMap map = principal_plane(std::vector<double>(5 * 3, 0.1), 3);
  EXPECT_EQ(map.points, std::vector<double>(10));
  EXPECT_EQ(map.share[0], 0);
  EXPECT_EQ(principal_plane(std::vector<double>{1, 2}, 1).points.size(), 4u);  // one axis only
}

}  // namespace
}  // namespace phasor
