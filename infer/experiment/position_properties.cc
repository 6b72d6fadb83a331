// The numbers about tables of position vectors, each beside that of random rows.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <span>

#include "infer/render/position_report.h"
#include "phasor/lens/table.h"

namespace infer {
namespace {

using Number = std::optional<double>;

/// Properties that come about together.
struct Measure {
  std::vector<Property> properties;
  int64_t least_rows;
  std::function<std::vector<Number>(MatrixView)> numbers;  // as many
};

Number longest_by_shortest(MatrixView table) {
  double shortest = 0, longest = 0;
  for (int64_t i = 0; i < table.rows; ++i) {
    const double norm =
        mean_norm({table.values.subspan(i * table.columns, table.columns), 1, table.columns});
    shortest = i == 0 ? norm : std::min(shortest, norm);
    longest = std::max(longest, norm);
  }
  return shortest > 0 ? Number(longest / shortest) : std::nullopt;
}

/// The mean over the columns that are not constant.
Number mean_peak_share(MatrixView table) {
  double sum = 0;
  int64_t columns = 0;
  for (const phasor::ColumnPeak& peak : phasor::column_peaks(table.values, table.columns)) {
    if (peak.cycles == 0) continue;
    sum += peak.share;
    ++columns;
  }
  return columns > 0 ? Number(sum / static_cast<double>(columns)) : std::nullopt;
}

Number rising_steps(MatrixView table) {
  const auto monotonicity = phasor::local_monotonicity(table.values, table.columns);
  if (monotonicity.steps == 0) return std::nullopt;
  return static_cast<double>(monotonicity.violations) / static_cast<double>(monotonicity.steps);
}

Number offset_of_first_rise(MatrixView table) {
  const auto offset = phasor::first_rise(table.values, table.columns);
  return offset ? Number(static_cast<double>(*offset)) : std::nullopt;
}

std::vector<Measure> measures() {
  const auto nearest = [](MatrixView t) -> std::vector<Number> {
    const phasor::RowPair pair = phasor::nearest_rows(t.values, t.columns);
    return {pair.distance, static_cast<double>(pair.offset)};
  };
  const auto shift = [](MatrixView t) -> std::vector<Number> {
    const phasor::LinearShift moved = phasor::linear_shift(t.values, t.columns, 1);
    return {moved.held_out, moved.unmoved};
  };
  const auto in_a_plane = [](MatrixView t) {
    const auto share = phasor::principal_plane(t.values, t.columns).share;
    return share[0] + share[1];
  };
  const auto one = [](const auto& measure) {
    return [measure](MatrixView t) { return std::vector<Number>{measure(t)}; };
  };
  const auto of_table = [&](double (*measure)(std::span<const double>, int64_t)) {
    return one([measure](MatrixView t) { return measure(t.values, t.columns); });
  };
  return {
      {{{"mean_norm", "mean length", "√(d/2) for a sinusoid"}}, 1, one(mean_norm)},
      {{{"norm_ratio", "longest by shortest", "1: all rows equally long"}},
       1,
       one(longest_by_shortest)},
      {{{"first_rise", "first rise", "where rows get more alike again", 0}},
       3,
       one(offset_of_first_rise)},
      {{{"nearest_rows", "nearest two rows", "near 0: two cannot be told apart"},
        {"nearest_offset", "  so far apart", "in positions", 0}},
       2,
       nearest},
      {{{"toeplitz_r2", "Toeplitz R²", "1: likeness is by offset alone"}},
       3,
       of_table(phasor::toeplitz_r2)},
      {{{"locality", "locality", "1: like its neighbours alone"}},
       3,
       of_table(phasor::position_locality)},
      {{{"symmetry", "symmetry", "1: before and after equally alike"}},
       3,
       of_table(phasor::position_symmetry)},
      {{{"rising_steps", "steps that rise", "0: nearer is always more alike"}},
       3,
       one(rising_steps)},
      {{{"column_peak", "strongest frequency", "1: each column is one sine"}},
       4,
       one(mean_peak_share)},
      {{{"linear_shift", "moved by a matrix", "1: P[p+1] = P[p]·R, held-out R²"},
        {"unmoved", "  by none", "the same for P[p+1] = P[p]"}},
       3,
       shift},
      {{{"stable_rank", "stable rank", "so many directions matter"}},
       1,
       of_table(phasor::stable_rank)},
      {{{"plane_share", "in a plane", "1: two axes hold all variance"}}, 3, one(in_a_plane)},
  };
}

/// Of the pairs whose frequency is known.
std::vector<Property> wavelengths(const NamedTable& table) {
  double shortest = 0, longest = 0;
  for (const phasor::ColumnPair& pair : table.pairs) {
    if (!(pair.frequency > 0)) continue;
    const double wavelength = 2 * std::numbers::pi / pair.frequency;
    shortest = longest == 0 ? wavelength : std::min(shortest, wavelength);
    longest = std::max(longest, wavelength);
  }
  if (longest == 0) return {};
  return {{"shortest_wavelength", "shortest wavelength", "in positions", 4, shortest},
          {"longest_wavelength", "longest wavelength", "in positions", 1, longest}};
}

}  // namespace

std::vector<Property> properties(const NamedTable& table, Progress& progress) {
  const Matrix random = random_like(table.values);
  const std::vector<Measure> all = measures();
  std::vector<Property> found = wavelengths(table);
  for (size_t i = 0; i < all.size(); ++i) {
    progress.show(table.name + ": properties", static_cast<int64_t>(i), std::ssize(all));
    const bool enough = table.rows() >= all[i].least_rows;
    const auto numbers = enough ? all[i].numbers(table.values) : std::vector<Number>{};
    const auto of_random = enough ? all[i].numbers(random) : std::vector<Number>{};
    for (size_t k = 0; k < all[i].properties.size(); ++k) {
      Property& property = found.emplace_back(all[i].properties[k]);
      if (!enough) continue;
      property.value = numbers[k];
      property.random = of_random[k];
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
  const auto compare = [&](const auto& measure, Property& property) {
    property.value = measure(a.values.values, a.width(), b.values.values, b.width());
    property.random = measure(a.values.values, a.width(), random.values, b.width());
  };
  compare(phasor::linear_cka, found[0]);
  compare(phasor::procrustes_distance, found[1]);
  return found;
}

Matrix cosine_distances(const NamedTable& table) {
  Matrix distances{
      phasor::row_matrix(table.values.values, table.width(), phasor::RowMeasure::kCosineDistance),
      table.rows(), table.rows()};
  for (int64_t i = 0; i < table.rows(); ++i) distances.values[i * table.rows() + i] = 0;
  return distances;
}

Matrix clock_pairs(const NamedTable& table) {
  Matrix hands{.values = {}, .rows = table.rows(), .columns = 0};
  const MatrixView values = table.values;
  for (int64_t p = 0; p < table.rows(); ++p) {
    for (const phasor::ColumnPair& pair : table.pairs) {
      if (pair.cosine < 0) continue;
      hands.values.push_back(values.at(p, pair.sine));
      hands.values.push_back(values.at(p, pair.cosine));
    }
  }
  hands.columns = static_cast<int64_t>(hands.values.size()) / std::max<int64_t>(hands.rows, 1);
  return hands;
}

double clock_angle(double sine, double cosine) {
  const double angle = std::atan2(sine, cosine);
  return angle < 0 ? angle + 2 * std::numbers::pi : angle;
}

PositionsPage make_page(std::vector<TableSection> sections, std::vector<NamedTable> tables,
                        Progress& progress) {
  PositionsPage page{.sections = std::move(sections), .tables = std::move(tables)};
  if (page.asks(TableSection::kProperties)) {
    for (const NamedTable& table : page.tables) {
      page.properties.push_back(properties(table, progress));
    }
  }
  if (page.asks(TableSection::kAgainst)) page.against = likeness(page.tables[0], page.tables[1]);
  return page;
}

bool PositionsPage::asks(TableSection section) const {
  return std::ranges::find(sections, section) != sections.end();
}

}  // namespace infer
