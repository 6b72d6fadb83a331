// The measures of tables, each a row.
#include "infer/experiment/position_properties.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>

#include "phasor/lens/table.h"

namespace infer {
namespace {

using Values = std::span<const double>;  // [T, width]
using Number = std::optional<double>;
using Numbers = std::array<Number, 2>;

/// One property, or two that come about together.
struct Measure {
  int64_t least_rows;
  Numbers (*measure)(Values table, int64_t width);
  std::vector<Property> properties;
};

/// One of the lens's that give a number.
template <double (*measure)(Values, int64_t)>
Numbers number(Values table, int64_t width) {
  return {measure(table, width)};
}

Numbers norm_ratio(Values table, int64_t width) {
  const std::vector<double> norms = row_norms(table, width);
  const auto [shortest, longest] = std::ranges::minmax(norms);
  return {shortest > 0 ? Number(longest / shortest) : std::nullopt};
}

Numbers first_rise(Values table, int64_t width) {
  const auto offset = phasor::first_rise(table, width);
  return {offset ? Number(static_cast<double>(*offset)) : std::nullopt};
}

Numbers nearest_rows(Values table, int64_t width) {
  const phasor::RowPair pair = phasor::nearest_rows(table, width);
  return {pair.distance, static_cast<double>(pair.offset)};
}

Numbers rising_steps(Values table, int64_t width) {
  const auto [violations, steps] = phasor::local_monotonicity(table, width);
  return {steps > 0 ? Number(static_cast<double>(violations) / static_cast<double>(steps))
                    : std::nullopt};
}

/// The mean over the columns that are not constant.
Numbers column_peak(Values table, int64_t width) {
  double sum = 0, columns = 0;
  for (const phasor::ColumnPeak& peak : phasor::column_peaks(table, width)) {
    if (peak.cycles == 0) continue;
    sum += peak.share;
    ++columns;
  }
  return {columns > 0 ? Number(sum / columns) : std::nullopt};
}

Numbers linear_shift(Values table, int64_t width) {
  const phasor::LinearShift shift = phasor::linear_shift(table, width, 1);
  return {shift.held_out, shift.unmoved};
}

Numbers plane_share(Values table, int64_t width) {
  const auto share = phasor::principal_plane(table, width).share;
  return {share[0] + share[1]};
}

std::vector<Measure> measures() {
  return {
      {1, number<mean_norm>, {{"mean_norm", "mean length", "√(d/2) for a sinusoid"}}},
      {1, norm_ratio, {{"norm_ratio", "longest by shortest", "1: all rows equally long"}}},
      {3, first_rise, {{"first_rise", "first rise", "where rows get more alike again", 0}}},
      {2,
       nearest_rows,
       {{"nearest_rows", "nearest two rows", "near 0: two cannot be told apart"},
        {"nearest_offset", "  so far apart", "in positions", 0}}},
      {3,
       number<phasor::toeplitz_r2>,
       {{"toeplitz_r2", "Toeplitz R²", "1: likeness is by offset alone"}}},
      {3,
       number<phasor::position_locality>,
       {{"locality", "locality", "1: like its neighbours alone"}}},
      {3,
       number<phasor::position_symmetry>,
       {{"symmetry", "symmetry", "1: before and after equally alike"}}},
      {3, rising_steps, {{"rising_steps", "steps that rise", "0: nearer is always more alike"}}},
      {4, column_peak, {{"column_peak", "strongest frequency", "1: each column is one sine"}}},
      {3,
       linear_shift,
       {{"linear_shift", "moved by a matrix", "1: P[p+1] = P[p]·R, held-out R²"},
        {"unmoved", "  by none", "the same for P[p+1] = P[p]"}}},
      {1,
       number<phasor::stable_rank>,
       {{"stable_rank", "stable rank", "so many directions matter"}}},
      {3, plane_share, {{"plane_share", "in a plane", "1: two axes hold all variance"}}},
  };
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

std::vector<Property> properties(const NamedTable& table, Progress& progress) {
  const Matrix random = random_like(table.values);
  const std::vector<Measure> all = measures();
  std::vector<Property> found = wavelengths(table);
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& [least_rows, measure, properties] = all[i];
    progress.show(table.name + ": properties", static_cast<int64_t>(i), std::ssize(all));
    const bool enough = table.rows() >= least_rows;
    const Numbers values = enough ? measure(table.values.values, table.width()) : Numbers{};
    const Numbers randoms = enough ? measure(random.values, table.width()) : Numbers{};
    for (size_t k = 0; k < properties.size(); ++k) {
      found.push_back(properties[k]);
      found.back().value = values[k];
      found.back().random = randoms[k];
    }
  }
  return found;
}

std::vector<Property> likeness(const NamedTable& a, const NamedTable& b) {
  std::vector<Property> found = {
      {"linear_cka", "linear CKA", "1: equal but for rotation, scale and shift"},
      {"procrustes", "Procrustes distance", "0: equal but for rotation, scale and shift"}};
  if (a.rows() < 3) return found;
  const Matrix random = random_like(b.values);
  const std::array measures = {phasor::linear_cka, phasor::procrustes_distance};
  for (size_t i = 0; i < found.size(); ++i) {
    found[i].value = measures[i](a.values.values, a.width(), b.values.values, b.width());
    found[i].random = measures[i](a.values.values, a.width(), random.values, b.width());
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
    const Values row = table.values.row(p);
    for (const phasor::ColumnPair& pair : pairs) {
      const double angle = std::atan2(row[pair.sine], row[pair.cosine]);
      angles.values.push_back(angle < 0 ? angle + 2 * std::numbers::pi : angle);
    }
  }
  return angles;
}

}  // namespace infer
