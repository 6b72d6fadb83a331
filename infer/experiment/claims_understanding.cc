// "Understanding positional embeddings in transformer models".

#include <algorithm>
#include <cmath>

#include "infer/experiment/claim_list.h"
#include "phasor/lens/table.h"

namespace infer::claims {
namespace {

constexpr int64_t kRows = 250, kWidth = 1024;  // of its figures: positions 1 to 250

/// Cosine distances of every two positions.
class Distances {
 public:
  explicit Distances(const Matrix& table)
      : values_(row_matrix(table.values, kWidth, RowMeasure::kCosineDistance)) {}
  double operator()(int64_t p, int64_t q) const { return values_[(p - 1) * kRows + q - 1]; }

 private:
  std::vector<double> values_;  // [kRows, kRows]
};

void add_distances(const Distances& distance, Claims& list) {
  struct Printed {
    int64_t p, q;
    double value;
  };
  for (const auto& [p, q, printed] : {Printed{1, 2, 0.026488616022189992},
                                      {1, 3, 0.09339161307513},
                                      {1, 30, 0.4323030365719962},
                                      {30, 31, 0.02648861602218988}}) {
    list.push_back(
        {.text = fmt::format("d = 1024: the cosine distance of positions {} and {} is {}", p, q,
                             printed),
         .computed = fmt::format("{:.15f}", distance(p, q)),
         .holds = near(distance(p, q), printed, 1e-12)});
  }

  int64_t falling = 0, first = kRows;
  for (int64_t q = 2; q <= kRows; ++q) {
    if (distance(1, q) >= distance(1, q - 1)) continue;
    if (falling++ == 0) first = q;
  }
  list.push_back({.text = "The distances from position 1 increase monotonically up to position 250",
                  .computed = fmt::format(
                      "{} of {} steps fall; the first: {:.6f} at {}, {:.6f} at {}", falling,
                      kRows - 1, distance(1, first - 1), first - 1, distance(1, first), first),
                  .holds = falling == 0,
                  .should_hold = false,
                  .numbers = falling == 43 && first == 70,
                  .reason = "only up to where the dot product rises again, offset 69"});
}

void add_the_criteria(const Tables& tables, const Matrix& table, Claims& list) {
  std::vector<double> filled(kRows * 8);
  for (size_t i = 0; i < filled.size(); ++i) filled[i] = static_cast<double>(i / 8);
  const double largest = std::ranges::max(filled);
  const auto apart = row_matrix(filled, 8, RowMeasure::kEuclidean);
  list.push_back(
      {.text = "A vector filled with the position: distances are right, values are not bounded",
       .computed = fmt::format("‖P(1) − P(31)‖ is {:.0f} times ‖P(1) − P(2)‖; P(249) = {:.0f}",
                               apart[kRows + 31] / apart[kRows + 2], largest),
       .holds = near(apart[kRows + 31], 30 * apart[kRows + 2], 1e-9) && largest > 1});
  const double in_five = filled[8] / 5, in_thirty = filled[8] / 30;
  list.push_back({.text = "… divided by the length: bounded, but not the same for every length",
                  .computed = fmt::format("P(1) = {:.4f} in 5 words, {:.4f} in 30; P(249) = {:.4f}",
                                          in_five, in_thirty, largest / kRows),
                  .holds = in_five != in_thirty && largest / kRows <= 1});

  const Matrix shorter = tables.paper(30, kWidth, 10000, 1);
  const Matrix again = tables.paper(kRows, kWidth, 10000, 1);
  const double by_length =
      largest_difference(shorter.values, std::span(table.values).first(shorter.values.size()));
  const double by_run = largest_difference(again.values, table.values);
  const auto [low, high] = std::ranges::minmax(table.values);
  const double bound = std::max(-low, high);
  const RowPair nearest = nearest_rows(table.values, kWidth);
  list.push_back(
      {.text = "Sinusoids reflect distances, are bounded, independent of the length, and "
               "deterministic",
       .computed = fmt::format("nearest rows: neighbours ({:.3f}); |values| ≤ {:.6f}; 30 or 250 "
                               "rows: {} apart; computed twice: {}",
                               nearest.distance, bound, by_length, by_run),
       .holds = nearest.offset == 1 && bound <= 1 && by_length == 0 && by_run == 0,
       .numbers = near(bound, 1, 1e-8),
       .reason = "they reflect small distances; far positions are not ordered"});
}

void add_the_waves(const Matrix& table, Claims& list) {
  const auto [low, high] = std::ranges::minmax(table.values);
  list.push_back({.text = "The values are bounded between 0 and 1",
                  .computed = fmt::format("from {:.6f} to {:.6f}", low, high),
                  .holds = low >= 0 && high <= 1,
                  .should_hold = false,
                  .numbers = near(low, -1, 1e-4) && near(high, 1, 1e-8),
                  .reason = "between −1 and 1"});

  const double early = wavelength(table, 0, 1), late = wavelength(table, 1022, 1023);
  list.push_back({.text = "Early dimensions have low frequencies, late ones high",
                  .computed = fmt::format("wavelength of the first pair {:.4f}, of the last {:.1f}",
                                          early, late),
                  .holds = early > late,
                  .should_hold = false,
                  .numbers = near(early / kCircle, 1, 1e-9) &&
                             near(late / kCircle / std::pow(10000.0, 1022.0 / 1024), 1, 1e-9),
                  .reason = "the other way round"});

  std::vector<double> sines, cosines;
  for (size_t i = 0; i < table.values.size(); ++i) {
    (i % 2 == 0 ? sines : cosines).push_back(table.values[i]);
  }
  const double of_sines = toeplitz_r2(sines, kWidth / 2),
               of_cosines = toeplitz_r2(cosines, kWidth / 2);
  const double of_both = toeplitz_r2(table.values, kWidth);
  list.push_back(
      {.text = "Sines alone or cosines alone are worse",
       .computed = fmt::format("Toeplitz R² of the sines {:.4f}, of the cosines {:.4f}, of both "
                               "{:.12f}",
                               of_sines, of_cosines, of_both),
       .holds = of_sines < 0.999 && of_cosines < 0.999 && near(of_both, 1, 1e-12),
       .reason = "only together do they depend on the offset alone"});
}

void add_the_figures(const Matrix& table, const Distances& distance, Claims& list) {
  double off = 0, own = 0, farthest = 0;
  for (int64_t p = 1; p <= kRows; ++p) {
    own = std::max(own, std::abs(distance(p, p)));
    for (int64_t q = 1; q <= kRows; ++q) {
      off = std::max(off, std::abs(distance(p, q) - distance(1, 1 + std::abs(p - q))));
      farthest = std::max(farthest, distance(p, q));
    }
  }
  list.push_back(
      {.text = "Figure: the 250×250 matrix of cosine distances",
       .computed = fmt::format("0 to {:.6f}; {:.1e} off zero on the diagonal and {:.1e} off one "
                               "value for each offset",
                               farthest, own, off),
       .holds = own <= 1e-12 && off <= 1e-12 && farthest > 0.4323});

  const PlaneMap map = principal_plane(table.values, kWidth);
  const auto apart = row_matrix(map.points, 2, RowMeasure::kEuclidean);
  const double across = std::ranges::max(apart);
  double step = 0;
  int64_t beside = 0;  // positions that no other is nearer to than a neighbour
  for (int64_t p = 1; p <= kRows; ++p) {
    if (p < kRows) step = std::max(step, apart[(p - 1) * kRows + p]);
    const double neighbour = distance(p, p < kRows ? p + 1 : p - 1);
    double nearest = neighbour;
    for (int64_t q = 1; q <= kRows; ++q) {
      if (q != p) nearest = std::min(nearest, distance(p, q));
    }
    beside += nearest >= neighbour - 1e-12;
  }
  list.push_back(
      {.text = "Figure: in a 2-D map the positions fall in a continuous line",
       .computed = fmt::format("for {} of {} none is nearer than a neighbour; in the plane "
                               "of two principal axes the longest step is {:.1f} % of the map",
                               beside, kRows, 100 * step / across),
       .holds = beside == kRows && step < 0.05 * across,
       .reason = "a map by PCA, which is the same on every run; the text's is by UMAP"});
}

}  // namespace

Claims understanding_positional_embeddings(const Tables& tables, const ClaimModels&) {
  Claims list;
  const Matrix table = tables.paper(kRows, kWidth, 10000, 1);
  const Distances distance(table);
  add_the_criteria(tables, table, list);
  add_the_waves(table, list);
  add_distances(distance, list);
  add_the_figures(table, distance, list);
  return list;
}

}  // namespace infer::claims
