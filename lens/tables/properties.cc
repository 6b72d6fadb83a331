#include "phasor/lens/properties.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numbers>
#include <numeric>

#include "lens/rows.h"
#include "phasor/lens/table.h"

namespace phasor {
using namespace internal;

namespace {

using Number = std::optional<double>;
using Rows = std::span<const double>;

constexpr TableProperty kProperties[] = {
    {"mean_norm", "mean length", "√(d/2) for a sinusoid"},
    {"norm_ratio", "longest by shortest", "1: all rows equally long"},
    {"first_rise", "first rise", "where rows get more alike again", 0},
    {"nearest_rows", "nearest two rows", "near 0: two cannot be told apart"},
    {"nearest_offset", "  their distance", "in positions", 0},
    {"toeplitz_r2", "Toeplitz R²", "1: likeness is by offset alone"},
    {"neighbour_likeness", "neighbour likeness", "1: like its neighbours alone"},
    {"mirror_likeness", "mirror likeness", "1: before and after equally alike"},
    {"rising_steps", "steps that rise", "0: nearer is always more alike"},
    {"column_peak", "strongest frequency", "1: each column is a sine of whole turns"},
    {"linear_shift", "moved by a matrix", "1: P[p+1] = P[p]·R, held-out R²"},
    {"unmoved", "  by none", "the same for P[p+1] = P[p]"},
    {"stable_rank", "stable rank", "number of directions that matter"},
    {"plane_share", "in a plane", "1: two axes hold all variance"}};

constexpr TableProperty kLikeness[] = {
    {"linear_cka", "linear CKA", "1: equal up to rotation, scale, shift"},
    {"procrustes", "Procrustes distance", "0: equal up to rotation, scale, shift"}};

Number quotient(double a, double b) { return b > 0 ? Number(a / b) : std::nullopt; }

std::vector<double> lengths(Rows table, int64_t d_model) {
  std::vector<double> lengths;
  for (size_t at = 0; at < table.size(); at += d_model)
    lengths.push_back(norm(&table[at], d_model));
  return lengths;
}

double mean(Rows numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

/// kProperties of a table; empty where it has too few rows. `step` is called before each.
std::vector<Number> properties_of(Rows table, int64_t width, const std::function<void()>& step) {
  const int64_t rows = num_rows(table, width);
  std::vector<Number> numbers;
  const auto add = [&](int64_t least_rows, auto measure) {
    step();
    numbers.push_back(rows >= least_rows ? Number(measure()) : std::nullopt);
  };
  add(1, [&] { return mean(lengths(table, width)); });
  add(1, [&] {
    const auto [shortest, longest] = std::ranges::minmax(lengths(table, width));
    return quotient(longest, shortest);
  });
  add(3, [&] { return first_rise(table, width); });
  RowPair nearest;
  add(2, [&] { return (nearest = nearest_rows(table, width)).distance; });
  add(2, [&] { return nearest.offset; });
  add(3, [&] { return toeplitz_r2(table, width); });
  add(3, [&] { return neighbour_likeness(table, width); });
  add(3, [&] { return mirror_likeness(table, width); });
  add(3, [&] {
    const auto [violations, steps] = local_monotonicity(table, width);
    return quotient(static_cast<double>(violations), static_cast<double>(steps));
  });
  add(4, [&] {  // the mean over columns, each by its variance: rounding and constants do not count
    double sum = 0, variance = 0;
    for (const ColumnPeak& peak : column_peaks(table, width)) {
      sum += peak.share * peak.variance;
      variance += peak.variance;
    }
    return quotient(sum, variance);
  });
  LinearShift shift;
  add(3, [&] { return (shift = linear_shift(table, width, 1)).held_out; });
  add(3, [&] { return shift.unmoved; });
  add(2, [&] { return stable_rank(table, width); });
  add(3, [&] {
    const auto share = principal_plane(table, width).share;
    return share[0] + share[1];
  });
  return numbers;
}

/// A table of random rows of the same mean length.
std::vector<double> random_like(Rows table, int64_t width) {
  std::vector<double> random = uniform_table(num_rows(table, width), width);
  const double length = mean(lengths(random, width));
  const double factor = length > 0 ? mean(lengths(table, width)) / length : 0;
  for (double& value : random) value *= factor;
  return random;
}

/// Measures a table, random rows and smooth tables, `step` before each number.
template <typename Measure>
std::vector<TableProperty> beside_random(std::span<const TableProperty> properties, Rows table,
                                         int64_t width, const Progress& progress,
                                         const Measure& measure) {
  constexpr int64_t kDraws = 8, kMostRows = 1024, kMostProducts = int64_t{1} << 30;
  const int64_t rows = num_rows(table, width);
  const bool draws = rows <= kMostRows && rows * rows * width <= kMostProducts;
  int64_t done = 0;
  const auto step = [&] {
    if (progress) progress(done++, (2 + (draws ? kDraws : 0)) * std::ssize(properties));
  };
  std::vector<TableProperty> found(properties.begin(), properties.end());
  const auto measured = [&](Rows of, auto take) {
    const std::vector<Number> numbers = measure(of, step);
    for (size_t i = 0; i < numbers.size(); ++i) take(i, numbers[i]);
  };
  measured(table, [&](size_t i, Number number) { found[i].value = number; });
  measured(random_like(table, width), [&](size_t i, Number number) { found[i].random = number; });
  std::vector<std::vector<double>> of_draws(found.size());
  const auto tables =
      draws ? stationary_tables(table, width, kDraws) : std::vector<std::vector<double>>();
  for (const std::vector<double>& drawn : tables) {
    measured(drawn, [&](size_t i, Number number) {
      if (number) of_draws[i].push_back(*number);
    });
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (of_draws[i].size() < 2) continue;
    found[i].smooth = mean(of_draws[i]);
    double squares = 0;
    for (const double x : of_draws[i]) squares += (x - *found[i].smooth) * (x - *found[i].smooth);
    found[i].smooth_sd = std::sqrt(squares / static_cast<double>(of_draws[i].size() - 1));
  }
  return found;
}

}  // namespace

std::vector<TableProperty> table_properties(std::span<const double> table, int64_t d_model,
                                            std::span<const ColumnPair> pairs,
                                            const Progress& progress) {
  std::vector<TableProperty> found = beside_random(
      kProperties, table, d_model, progress,
      [&](Rows rows, const auto& step) { return properties_of(rows, d_model, step); });
  std::vector<double> wavelengths;
  for (const ColumnPair& pair : pairs) {
    if (pair.frequency > 0) wavelengths.push_back(2 * std::numbers::pi / pair.frequency);
  }
  if (wavelengths.empty()) return found;
  const auto [shortest, longest] = std::ranges::minmax(wavelengths);
  found.insert(found.begin(),
               {{"shortest_wavelength", "shortest wavelength", "in positions", 4, shortest},
                {"longest_wavelength", "longest wavelength", "in positions", 1, longest}});
  return found;
}

std::vector<TableProperty> table_likeness(std::span<const double> a, int64_t a_width,
                                          std::span<const double> b, int64_t b_width,
                                          const Progress& progress) {
  if (num_rows(a, a_width) < 3) return {std::begin(kLikeness), std::end(kLikeness)};
  return beside_random(kLikeness, b, b_width, progress, [&](Rows rows, const auto& step) {
    std::vector<Number> numbers;
    for (const auto measure : {linear_cka, procrustes_distance}) {
      step();
      numbers.emplace_back(measure(a, a_width, rows, b_width));
    }
    return numbers;
  });
}

}  // namespace phasor
