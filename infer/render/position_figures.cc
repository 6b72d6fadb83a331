// Tables of position vectors as figures.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "infer/render/figure.h"
#include "infer/render/figure_folder.h"
#include "infer/render/position_report.h"
#include "phasor/lens/table.h"

namespace infer {
namespace {

constexpr int64_t kMostCurves = 6;
constexpr int64_t kMostClockRows = 32, kMostClocks = 32;

std::string title(const std::string& what, const NamedTable& table) {
  return fmt::format("{}: {}", what, table.description);
}

std::string image(const NamedTable& table) {
  return heat_map_figure(table.values,
                         {.text = {title("Position vectors", table), "column", "position"},
                          .map = ColourMap::kDiverging,
                          .first_row = static_cast<double>(table.first_position)});
}

std::string distances(const NamedTable& table) {
  const auto first = static_cast<double>(table.first_position);
  return heat_map_figure(cosine_distances(table),
                         {.text = {title("Distances", table), "position", "position"},
                          .value_label = "1 − cos",
                          .first_row = first,
                          .first_column = first});
}

/// The sine columns of some pairs over the positions.
std::string curves(const NamedTable& table) {
  std::vector<Series> series;
  const auto pairs = static_cast<int64_t>(table.pairs.size());
  for (int64_t i = 0; i < std::min(pairs, kMostCurves); ++i) {
    const phasor::ColumnPair& pair =
        table.pairs[pairs <= kMostCurves ? i : i * (pairs - 1) / (kMostCurves - 1)];
    Series& column = series.emplace_back(Series{fmt::format("column {}", pair.sine), {}, {}});
    for (int64_t p = 0; p < table.rows(); ++p) {
      column.x.push_back(static_cast<double>(table.first_position + p));
      column.y.push_back(MatrixView(table.values).at(p, pair.sine));
    }
  }
  return line_chart({title("Columns", table), "position", "value"}, series);
}

/// The sine columns of some positions over the pairs.
std::string rows(const NamedTable& table) {
  std::vector<Series> series;
  for (const int64_t p : {0, 4, 8, 12}) {
    if (p >= table.rows()) break;
    Series& row =
        series.emplace_back(Series{fmt::format("position {}", table.first_position + p), {}, {}});
    for (size_t i = 0; i < table.pairs.size(); ++i) {
      row.x.push_back(static_cast<double>(i));
      row.y.push_back(MatrixView(table.values).at(p, table.pairs[i].sine));
    }
  }
  return line_chart({title("Rows", table), "pair of columns", "sine"}, series);
}

std::string clock(const NamedTable& table) {
  const Matrix all = clock_pairs(table);
  const int64_t pairs = all.columns / 2;
  const int64_t every = std::max<int64_t>((pairs + kMostClocks - 1) / kMostClocks, 1);
  Matrix shown{.values = {}, .rows = std::min(table.rows(), kMostClockRows), .columns = 0};
  std::vector<std::string> row_labels, column_labels;
  for (int64_t p = 0; p < shown.rows; ++p) {
    row_labels.push_back(fmt::format("{}", table.first_position + p));
    for (int64_t k = 0; k < pairs; k += every) {
      for (const int64_t part : {0, 1}) {
        shown.values.push_back(MatrixView(all).at(p, 2 * k + part));
      }
    }
  }
  for (int64_t k = 0; k < pairs; k += every) column_labels.push_back(fmt::format("{}", k));
  shown.columns = 2 * static_cast<int64_t>(column_labels.size());
  return clock_hands({title("Clock hands", table), "pair of columns", "position"}, shown,
                     row_labels, column_labels);
}

std::string map(const NamedTable& table) {
  const phasor::PlaneMap plane = phasor::principal_plane(table.values.values, table.width());
  std::vector<double> x, y;
  for (int64_t p = 0; p < table.rows(); ++p) {
    x.push_back(plane.points[2 * p]);
    y.push_back(plane.points[2 * p + 1]);
  }
  const auto label = [&](const char* name, double share) {
    return fmt::format("{} principal axis ({:.1f} % of the variance)", name, 100 * share);
  };
  return scatter_path({title("Positions in the plane", table), label("first", plane.share[0]),
                       label("second", plane.share[1])},
                      x, y, static_cast<double>(table.first_position));
}

/// What positions have in common by their offset, every table in one picture.
std::string offsets(const std::vector<NamedTable>& tables) {
  std::vector<Series> series;
  for (const NamedTable& table : tables) {
    Series& line = series.emplace_back(
        Series{table.name, {}, phasor::dot_product_by_offset(table.values.values, table.width())});
    const double itself = line.y.empty() ? 0 : line.y.front();
    for (size_t i = 0; i < line.y.size(); ++i) {
      line.x.push_back(static_cast<double>(i));
      if (itself > 0) line.y[i] /= itself;
    }
  }
  const std::string name = tables.size() == 1 ? ": " + tables[0].description : "";
  return line_chart(
      {"Likeness by offset" + name, "offset", "mean ⟨P[p], P[p + offset]⟩ / ⟨P[p], P[p]⟩"}, series);
}

}  // namespace

void write_figures(const PositionsPage& page, const std::filesystem::path& folder, bool quiet) {
  const FigureFolder figures(folder, quiet);
  for (size_t i = 0; i < page.tables.size(); ++i) {
    const NamedTable& table = page.tables[i];
    std::string prefix;
    if (page.tables.size() > 1) prefix = fmt::format("{}-{}-", i + 1, file_name(table.name));
    const auto write = [&](TableSection section, const char* name, const auto& draw) {
      if (page.asks(section)) figures.write(prefix + name, draw(table));
    };
    write(TableSection::kImage, "image", image);
    write(TableSection::kCurves, "curves", curves);
    write(TableSection::kCurves, "rows", rows);
    write(TableSection::kDistances, "distances", distances);
    write(TableSection::kClock, "clock", clock);
    write(TableSection::kMap, "map", map);
  }
  if (page.asks(TableSection::kProperties)) figures.write("offsets", offsets(page.tables));
}

}  // namespace infer
