// What the rows of a table have to do with each other, against closed forms of the sinusoid.
#include "tests/support/tables.h"
#include "tests/support/test.h"

namespace phasor {
namespace {

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

TEST(ColumnPairsTest, ALoneColumnIsASineOrNone) {
  EXPECT_EQ(column_pairs(kPaper, 5).back().cosine, -1);
  EXPECT_EQ(column_pairs(kMarian, 5).back().cosine, -1);
  EXPECT_EQ(column_pairs(kT2T, 5).size(), 2u);
  EXPECT_THROW(column_pairs(kOpenNmt, 5), InvalidArgument);
}

TEST(RowMatrixTest, TheThreeMeasuresAgreeOnAnyTable) {
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
}

TEST(RowMatrixTest, ARowOfZerosHasCosineDistanceOne) {
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

TEST(LocalMonotonicityTest, OfASinusoidFollowsFromItsDotProducts) {
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
}

TEST(LocalMonotonicityTest, RandomRowsFallAndRiseAlikeOften) {
  const Monotonicity counts = local_monotonicity(random_table(400 * 64, 7), 64);
  EXPECT_NEAR(static_cast<double>(counts.violations) / static_cast<double>(counts.steps), 0.5,
              0.02);
  EXPECT_EQ(local_monotonicity(std::vector<double>{1, 2, 3}, 1).steps, 2);  // 0 → 2 and 2 → 0
  EXPECT_EQ(local_monotonicity(std::vector<double>{1, 2, 3}, 3).steps, 0);
}

}  // namespace
}  // namespace phasor
