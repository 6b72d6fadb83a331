#include "infer/positions/properties.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <span>

#include "phasor/lens/table.h"

namespace infer {
namespace {

using Number = std::optional<double>;

constexpr Property kProperties[] = {
    {"mean_norm", "mean length", "√(d/2) for a sinusoid"},
    {"norm_ratio", "longest by shortest", "1: all rows equally long"},
    {"first_rise", "first rise", "where rows get more alike again", 0},
    {"nearest_rows", "nearest two rows", "near 0: two cannot be told apart"},
    {"nearest_offset", "  their distance", "in positions", 0},
    {"toeplitz_r2", "Toeplitz R²", "1: likeness is by offset alone"},
    {"neighbour_likeness", "neighbour likeness", "1: like its neighbours alone"},
    {"mirror_likeness", "mirror likeness", "1: before and after equally alike"},
    {"rising_steps", "steps that rise", "0: nearer is always more alike"},
    {"column_peak", "strongest frequency", "1: each column is one sine"},
    {"linear_shift", "moved by a matrix", "1: P[p+1] = P[p]·R, held-out R²"},
    {"unmoved", "  by none", "the same for P[p+1] = P[p]"},
    {"stable_rank", "stable rank", "number of directions that matter"},
    {"plane_share", "in a plane", "1: two axes hold all variance"}};

Number quotient(double a, double b) { return b > 0 ? Number(a / b) : std::nullopt; }

/// kProperties of a table; empty where it has too few rows. `step` is called before each.
std::vector<Number> numbers_of(const Matrix& table, const std::function<void()>& step) {
  const std::span<const double> rows = table.values;
  const int64_t width = table.columns;
  std::vector<Number> numbers;
  const auto add = [&](int64_t least_rows, auto measure) {
    step();
    numbers.push_back(table.rows >= least_rows ? Number(measure()) : std::nullopt);
  };
  add(1, [&] { return mean_norm(rows, width); });
  add(1, [&] {
    const std::vector<double> norms = row_norms(rows, width);
    return quotient(std::ranges::max(norms), std::ranges::min(norms));
  });
  add(3, [&] { return phasor::first_rise(rows, width); });
  phasor::RowPair nearest;
  add(2, [&] { return (nearest = phasor::nearest_rows(rows, width)).distance; });
  add(2, [&] { return nearest.offset; });
  add(3, [&] { return phasor::toeplitz_r2(rows, width); });
  add(3, [&] { return phasor::neighbour_likeness(rows, width); });
  add(3, [&] { return phasor::mirror_likeness(rows, width); });
  add(3, [&] {
    const auto [violations, steps] = phasor::local_monotonicity(rows, width);
    return quotient(static_cast<double>(violations), static_cast<double>(steps));
  });
  add(4, [&] {  // the mean over columns, each by its variance: rounding and constants do not count
    double sum = 0, variance = 0;
    for (const phasor::ColumnPeak& peak : phasor::column_peaks(rows, width)) {
      sum += peak.share * peak.variance;
      variance += peak.variance;
    }
    return quotient(sum, variance);
  });
  phasor::LinearShift shift;
  add(3, [&] { return (shift = phasor::linear_shift(rows, width, 1)).held_out; });
  add(3, [&] { return shift.unmoved; });
  add(2, [&] { return phasor::stable_rank(rows, width); });
  add(3, [&] {
    const auto share = phasor::principal_plane(rows, width).share;
    return share[0] + share[1];
  });
  return numbers;
}

/// Random tables that are as smooth; none of a table so large that it would take minutes.
std::vector<Matrix> as_smooth(const Matrix& table) {
  constexpr int64_t kDraws = 8, kMostRows = 1024, kMostProducts = int64_t{1} << 30;
  std::vector<Matrix> tables;
  if (table.rows > kMostRows) return tables;
  if (table.rows * table.rows * table.columns > kMostProducts) return tables;
  for (auto& values : phasor::stationary_tables(table.values, table.columns, kDraws)) {
    tables.push_back({std::move(values), table.rows, table.columns});
  }
  return tables;
}

/// Mean and standard deviation; empty for fewer than two draws that have the property.
void set_smooth(Property& property, std::span<const double> draws) {
  if (draws.size() < 2) return;
  const auto count = static_cast<double>(draws.size());
  const double mean = std::accumulate(draws.begin(), draws.end(), 0.0) / count;
  double squares = 0;
  for (const double x : draws) squares += (x - mean) * (x - mean);
  property.smooth = mean;
  property.smooth_sd = std::sqrt(squares / (count - 1));
}

/// Of the pairs whose frequency is known.
std::vector<Property> wavelengths(const NamedTable& table) {
  std::vector<double> known;
  for (const phasor::ColumnPair& pair : table.pairs) {
    if (pair.frequency > 0) known.push_back(2 * std::numbers::pi / pair.frequency);
  }
  if (known.empty()) return {};
  const auto [shortest, longest] = std::ranges::minmax(known);
  return {{"shortest_wavelength", "shortest wavelength", "in positions", 4, shortest},
          {"longest_wavelength", "longest wavelength", "in positions", 1, longest}};
}

}  // namespace

std::vector<Property> properties(const NamedTable& table, const phasor::internal::Stages& stages) {
  const std::vector<Matrix> smooth = as_smooth(table.values);
  int64_t done = 0;
  const auto step = [&] {
    stages.show(table.name + ": properties", done++,
                (2 + std::ssize(smooth)) * std::ssize(kProperties));
  };
  const std::vector<Number> numbers = numbers_of(table.values, step);
  const std::vector<Number> random = numbers_of(random_like(table.values), step);
  std::vector<std::vector<Number>> of_smooth;
  for (const Matrix& drawn : smooth) of_smooth.push_back(numbers_of(drawn, step));
  std::vector<Property> found = wavelengths(table);
  for (size_t i = 0; i < std::size(kProperties); ++i) {
    found.push_back(kProperties[i]);
    found.back().value = numbers[i];
    found.back().random = random[i];
    std::vector<double> draws;
    for (const std::vector<Number>& drawn : of_smooth) {
      if (drawn[i]) draws.push_back(*drawn[i]);
    }
    set_smooth(found.back(), draws);
  }
  return found;
}

std::vector<Property> likeness(const NamedTable& a, const NamedTable& b,
                               const phasor::internal::Stages& stages) {
  std::vector<Property> found = {
      {"linear_cka", "linear CKA", "1: equal up to rotation, scale, shift"},
      {"procrustes", "Procrustes distance", "0: equal up to rotation, scale, shift"}};
  if (a.rows() < 3) return found;
  const Matrix random = random_like(b.values);
  const std::vector<Matrix> smooth = as_smooth(b.values);
  const std::array measures = {phasor::linear_cka, phasor::procrustes_distance};
  int64_t done = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const auto to = [&](const Matrix& other) {
      stages.show("comparison", done++, std::ssize(found) * (2 + std::ssize(smooth)));
      return measures[i](a.values.values, a.width(), other.values, b.width());
    };
    found[i].value = to(b.values);
    found[i].random = to(random);
    std::vector<double> draws;
    for (const Matrix& drawn : smooth) draws.push_back(to(drawn));
    set_smooth(found[i], draws);
  }
  return found;
}

Matrix cosine_distances(const NamedTable& table) {
  Matrix distances{
      phasor::row_matrix(table.values.values, table.width(), phasor::RowMeasure::kCosineDistance),
      table.rows(), table.rows()};
  for (int64_t i = 0; i < table.rows(); ++i) distances.values[i * table.rows() + i] = 0;
  return distances;
}

Matrix clock_angles(const NamedTable& table) {
  std::vector<phasor::ColumnPair> pairs = table.pairs;
  std::erase_if(pairs, [](const phasor::ColumnPair& pair) { return pair.cosine < 0; });
  Matrix angles{.values = {}, .rows = table.rows(), .columns = std::ssize(pairs)};
  for (int64_t p = 0; p < table.rows(); ++p) {
    const auto row = table.values.row(p);
    for (const phasor::ColumnPair& pair : pairs) {
      const double angle = std::atan2(row[pair.sine], row[pair.cosine]);
      angles.values.push_back(angle < 0 ? angle + 2 * std::numbers::pi : angle);
    }
  }
  return angles;
}

}  // namespace infer
