// Machine Learning Mastery, "A Gentle Introduction to Positional Encoding", part 1.

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "infer/experiment/claim_list.h"
#include "phasor/lens/table.h"

namespace infer::claims {
namespace {

// The 4×4 table with n = 100, as printed.
constexpr std::array kPrinted = {0.0,        1.0,         0.0,        1.0,         //
                                 0.84147098, 0.54030231,  0.09983342, 0.99500417,  //
                                 0.90929743, -0.41614684, 0.19866933, 0.98006658,  //
                                 0.14112001, -0.98999250, 0.29552021, 0.95533649};
constexpr double kHalfADigit = 5.1e-9;  // of 8 decimals

void add_the_printed_table(const Tables& tables, Claims& list) {
  const Matrix table = tables.paper(4, 4, 100);
  const double difference = largest_difference(table.values, kPrinted);
  list.push_back({.text = "The 4×4 table with n = 100 that is printed",
                  .computed = fmt::format("PE(1) = {:.8f}; largest difference {:.1e}",
                                          fmt::join(table.row(1), ", "), difference),
                  .holds = difference <= kHalfADigit});

  const auto end = std::span(table.values).last(8);
  const bool goes_on = largest_difference(end, std::span(kPrinted).last(8)) <= kHalfADigit;
  list.push_back(
      {.text = "Positions k run over 0 ≤ k < L/2",
       .computed = fmt::format("for L = 4, PE(2) = {:.4f} and PE(3) = {:.4f}",
                               fmt::join(table.row(2), ", "), fmt::join(table.row(3), ", ")),
       .holds = !goes_on,
       .should_hold = false,
       .reason = "0 ≤ k < L: its own table has four rows for four words"});

  int64_t by_column = 0, by_position = 0;
  for (int64_t k = 0; k < 4; ++k) {
    for (int64_t j = 0; j < 4; ++j) {
      const double angle = static_cast<double>(k) / (j < 2 ? 1.0 : 10.0);  // n^(2i/d) = 1, 10
      by_column += near(table.at(k, j), j % 2 == 0 ? std::sin(angle) : std::cos(angle), 1e-12);
      by_position += near(table.at(k, j), k % 2 == 0 ? std::sin(angle) : std::cos(angle), 1e-12);
    }
  }
  list.push_back(
      {.text = "Even positions correspond to a sine, odd positions to a cosine",
       .computed = fmt::format("true of {} of 16 entries; of even and odd columns it is true of {}",
                               by_position, by_column),
       .holds = by_position == 16,
       .should_hold = false,
       .numbers = by_column == 16,
       .reason = "even columns are sines, odd columns cosines, at every position"});
}

void add_the_figures(const Tables& tables, Claims& list) {
  const Matrix table = tables.paper(100, 512);
  double difference = 0;
  std::vector<double> last;
  for (const int64_t k : {0, 4, 8, 12}) {
    for (int64_t x = 0; x < 100; ++x) {
      const double y =
          std::sin(static_cast<double>(k) / std::pow(10000.0, 2.0 * static_cast<double>(x) / 512));
      difference = std::max(difference, std::abs(table.at(k, 2 * x) - y));
    }
    last.push_back(table.at(k, 2 * 99));
  }
  list.push_back(
      {.text = "Figure: the curves sin(k / n^(2x/d)), x = 0 … 99, k = 0, 4, 8, 12, d = 512",
       .computed = fmt::format("columns 0, 2, … 198 of rows k, {:.1e} off; at x = 99: {:.4f}",
                               difference, fmt::join(last, ", ")),
       .holds = difference <= 1e-12});

  const double sum = std::accumulate(table.values.begin(), table.values.end(), 0.0);
  list.push_back({.text = "Figure: the 100×512 table with n = 10000",
                  .computed = fmt::format("{} × {}, sum of the entries {:.12f}", table.rows,
                                          table.columns, sum),
                  .holds = near(sum, 18297.143808534354, 1e-8),
                  .numbers = near(sum, sum_of_entries(100, 512), 1e-8)});
}

void add_wavelengths(const Tables& tables, Claims& list) {
  const Matrix table = tables.paper(2, 512);
  const double shortest = wavelength(table, 0, 1), longest = wavelength(table, 510, 511);
  const double step = std::pow(10000.0, 2.0 / 512);
  double uneven = 0;
  for (int64_t c = 2; c < 512; c += 2) {
    const double ratio = wavelength(table, c, c + 1) / wavelength(table, c - 2, c - 1);
    uneven = std::max(uneven, std::abs(ratio - step));
  }
  const Matrix t2t = tables.make(SinusoidalLayout::kT2T, 2, 512);
  const double end = kCircle * 10000;
  list.push_back(
      {.text = "The wavelengths form a geometric progression from 2π to 2πn",
       .computed = fmt::format("from {:.4f} to {:.1f}, each {:.4f} times the last; 2πn = {:.1f}",
                               shortest, longest, step, end),
       .holds = near(shortest / kCircle, 1, 1e-9) && near(longest / end, 1, 1e-6),
       .should_hold = false,
       .numbers = uneven <= 1e-9 && near(shortest / kCircle, 1, 1e-9) &&
                  near(longest / (kCircle * std::pow(10000.0, 510.0 / 512)), 1, 1e-9) &&
                  near(wavelength(t2t, 255, 511) / end, 1, 1e-9),
       .reason = "geometric, but the last is 2πn^((d−2)/d); tensor2tensor's table reaches 2πn"});
}

void add_odd_width(const Tables& tables, Claims& list) {
  const Matrix table = tables.paper(2, 5);
  const std::array printed = {0.8415, 0.5403, 0.0251, 0.9997};
  list.push_back(
      {.text = "Odd d: the code leaves the last column 0; d = 5: 0.8415, 0.5403, 0.0251, 0.9997, 0",
       .computed = fmt::format("PE(1) = {:.4f}", fmt::join(table.row(1), ", ")),
       .holds = table.at(1, 4) == 0,
       .should_hold = false,
       .numbers = largest_difference(table.row(1).first(4), printed) <= 5e-5 &&
                  near(table.at(1, 4), std::sin(std::pow(10000.0, -0.8)), 1e-15),
       .reason = "the formula has a last sine without a cosine; the loop ends one too early"});
}

void add_advantages(const Tables& tables, Claims& list) {
  const Matrix table = tables.paper(1000, 512), narrow = tables.paper(1000, 4);
  const auto [low, high] = std::ranges::minmax(table.values);
  list.push_back({.text = "The values are in [−1, 1]",
                  .computed = fmt::format("1000 × 512: from {:.6f} to {:.6f}", low, high),
                  .holds = low >= -1 && high <= 1,
                  .numbers = near(low, -1, 1e-6) && near(high, 1, 1e-6)});

  const RowPair wide = nearest_rows(table.values, 512), close = nearest_rows(narrow.values, 4);
  const auto zeros = std::count(table.row(0).begin(), table.row(0).end(), 0.0);
  list.push_back(
      {.text = "Each position has a unique encoding",
       .computed = fmt::format("the nearest two of 1000 rows: {:.3f} apart, at offset {} (d = "
                               "512); {:.4f}, at offset {} (d = 4)",
                               wide.distance, wide.offset, close.distance, close.offset),
       .holds = wide.distance > 0 && close.distance > 0,
       .numbers = near(wide.distance, 3.714, 5e-4) && wide.offset == 1 && zeros == 256 &&
                  near(close.distance, 0.0724, 5e-5) && close.offset == 622,
       .reason =
           fmt::format("rows are unique, single entries are not: PE(0) has {} zeros", zeros)});

  const auto first = std::span(table.values).first(100 * 512);
  const double toeplitz = toeplitz_r2(first, 512);
  const int64_t rise = first_rise(first, 512).value_or(0);
  list.push_back(
      {.text = "The similarity of positions can be measured, and so relative positions encoded",
       .computed = fmt::format("⟨PE(p), PE(q)⟩ depends on p − q alone (R² = {:.12f}) and falls "
                               "up to offset {}",
                               toeplitz, rise - 1),
       .holds = near(toeplitz, 1, 1e-12),
       .numbers = rise == 44,
       .reason = "from there on it rises and falls: alike does not mean near"});
}

}  // namespace

Claims machine_learning_mastery(const Tables& tables, const ClaimModels& models) {
  Claims list;
  add_the_printed_table(tables, list);
  if (models.sinusoidal) list.push_back(same_for_any_phrase(models.sinusoidal));
  add_the_figures(tables, list);
  add_wavelengths(tables, list);
  add_odd_width(tables, list);
  add_advantages(tables, list);
  return list;
}

}  // namespace infer::claims
