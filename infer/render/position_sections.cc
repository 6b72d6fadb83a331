#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "infer/render/heat_map.h"
#include "infer/render/position_report.h"
#include "phasor/lens/table.h"

namespace infer {
namespace {

using phasor::ColumnPair;
using Json = nlohmann::ordered_json;

constexpr int kPositionWidth = 10;  // of the column of positions, two blanks before it included

/// Indices of things of which there is room for `most`: all, or some from the first to the last.
std::vector<int64_t> spread(int64_t count, int64_t most) {
  std::vector<int64_t> chosen;
  const int64_t shown = std::min(count, std::max<int64_t>(most, 1));
  for (int64_t i = 0; i < shown; ++i) {
    chosen.push_back(shown == 1 ? 0 : (i * (count - 1) + (shown - 1) / 2) / (shown - 1));
  }
  return chosen;
}

/// The first of them and the last two; −1 stands for those in between.
std::vector<int64_t> ends(int64_t count, int64_t most) {
  std::vector<int64_t> chosen;
  if (count <= most) return spread(count, most);
  for (int64_t i = 0; i < std::max<int64_t>(most - 3, 1); ++i) chosen.push_back(i);
  for (const int64_t i : {int64_t{-1}, count - 2, count - 1}) chosen.push_back(i);
  return chosen;
}

std::string position_of(const NamedTable& table, int64_t row) {
  return fmt::format("{}", table.first_position + row);
}

std::string line_of(const std::string& label, const std::string& rest) {
  std::string line = pad_left(label, kPositionWidth) + "  " + rest;
  return line.erase(line.find_last_not_of(' ') + 1) + "\n";
}

/// Four decimals, and no "-0.0000".
std::string rounded(double value) {
  const std::string text = fmt::format("{:.4f}", value);
  return text == "-0.0000" ? "0.0000" : text;
}

std::string values(const NamedTable& table, const Output& output) {
  constexpr int64_t kMostRows = 12;
  constexpr int kCell = 9;
  const std::vector<int64_t> columns =
      ends(table.width(), std::max((output.width() - kPositionWidth - 4) / kCell, 4));
  const auto cells = [&](const auto& cell) {
    std::string line;
    for (const int64_t c : columns) line += c < 0 ? "  …" : fmt::format("{:>{}}", cell(c), kCell);
    return line;
  };
  std::string text = line_of("position", cells([](int64_t c) { return fmt::format("{}", c); }));
  for (const int64_t row : ends(table.rows(), kMostRows)) {
    if (row < 0) {
      text += line_of("…", "");
      continue;
    }
    text += line_of(position_of(table, row),
                    cells([&](int64_t c) { return rounded(table.values.at(row, c)); }));
  }
  return text;
}

std::string heat(const NamedTable& table, const Matrix& matrix, RangeOf range_of,
                 const Output& output) {
  std::vector<std::string> labels;
  for (int64_t row = 0; row < table.rows(); ++row) labels.push_back(position_of(table, row));
  return heat_map(matrix, labels, output.width(), range_of);
}

std::string image(const NamedTable& table, const Output& output) {
  return heat(table, table.values, symmetric_range, output);
}

std::string distances(const NamedTable& table, const Output& output) {
  return heat(table, cosine_distances(table), own_range, output);
}

std::string curves(const NamedTable& table, const Output& output) {
  constexpr int64_t kMostCurves = 8;
  const int room = output.width() - kPositionWidth - 4 - 22;
  const Range range = symmetric_range(table.values.values);
  std::string text;
  for (const int64_t i : spread(std::ssize(table.pairs), kMostCurves)) {
    const ColumnPair& pair = table.pairs[i];
    std::vector<double> column;
    for (int64_t p = 0; p < std::min<int64_t>(table.rows(), room); ++p) {
      column.push_back(table.values.at(p, pair.sine));
    }
    const std::string wavelength =
        pair.frequency > 0
            ? fmt::format("  wavelength {:.4g}", 2 * std::numbers::pi / pair.frequency)
            : "";
    text += line_of(fmt::format("column {}", pair.sine),
                    sparkline(column, range.low, range.high) + wavelength);
  }
  return text;
}

std::string clock(const NamedTable& table, const Output& output) {
  constexpr std::string_view kArrows[] = {"↑", "↗", "→", "↘", "↓", "↙", "←", "↖"};
  constexpr int64_t kMostRows = 16;
  constexpr int kCell = 4;
  const Matrix angles = clock_angles(table);
  const std::vector<int64_t> pairs =
      spread(angles.columns, std::min((output.width() - kPositionWidth - 2) / kCell, 16));
  std::string head;
  for (const int64_t k : pairs) head += fmt::format("{:>{}}", k, kCell);
  std::string text = line_of("pair", head);
  for (int64_t p = 0; p < std::min(table.rows(), kMostRows); ++p) {
    std::string line;
    for (const int64_t k : pairs) {
      const double angle = angles.at(p, k);
      line += pad_left(kArrows[std::lround(angle / (std::numbers::pi / 4)) % 8], kCell);
    }
    text += line_of(position_of(table, p), line);
  }
  return text;
}

std::string map(const NamedTable& table, const Output&) {
  const auto share = phasor::principal_plane(table.values.values, table.width()).share;
  return fmt::format("  {:.1f} % of the variance across, {:.1f} % upwards; --html FILE draws it\n",
                     100 * share[0], 100 * share[1]);
}

Json rows_of(const Matrix& matrix) {
  Json rows = Json::array();
  for (int64_t i = 0; i < matrix.rows; ++i) {
    const auto row = matrix.row(i);
    rows.push_back(std::vector<double>(row.begin(), row.end()));
  }
  return rows;
}

Json values_json(const NamedTable& table) { return rows_of(table.values); }

Json pairs_json(const NamedTable& table) {
  Json pairs = Json::array();
  for (const ColumnPair& pair : table.pairs) {
    pairs.push_back({{"sine", pair.sine},
                     {"cosine", pair.cosine < 0 ? Json() : Json(pair.cosine)},
                     {"frequency", pair.frequency > 0 ? Json(pair.frequency) : Json()}});
  }
  return pairs;
}

Json map_json(const NamedTable& table) {
  const phasor::PlaneMap plane = phasor::principal_plane(table.values.values, table.width());
  return {{"points", rows_of({plane.points, table.rows(), 2})}, {"share", plane.share}};
}

constexpr TableSection kSections[] = {
    {"values", "Values", "the numbers", "values", values, values_json},
    {"image", "Image: rows are positions, columns are columns", "all of them as a heat map",
     "values", image, values_json},
    {"curves", "Curves: columns over positions", "columns over positions", "pairs", curves,
     pairs_json},
    {"distances", "Distances: 1 − cos between every two positions",
     "1 - cos between every two positions", "distances", distances,
     [](const NamedTable& table) { return rows_of(cosine_distances(table)); }},
    {"clock", "Clock hands: each pair of columns (sine, cosine) as an angle, clockwise from twelve",
     "the angle of each pair of columns", "angles", clock,
     [](const NamedTable& table) { return rows_of(clock_angles(table)); }},  // radians [T, pairs]
    {"map", "Map: the positions in the plane that holds most of their variance",
     "the positions in the plane that holds most of their variance", "map", map, map_json},
    {"properties", "Properties", "what holds of the whole table, beside a table of random rows",
     "properties", nullptr, nullptr,
     [](const NamedTables& tables, Progress& progress) {
       PropertyColumns columns;
       for (const NamedTable& table : tables) columns.push_back(properties(table, progress));
       return columns;
     }},
    {"against", "Against each other", "how like each other two tables are", "against", nullptr,
     nullptr,
     [](const NamedTables& tables, Progress&) {
       return PropertyColumns{likeness(tables.at(0), tables.at(1))};
     },
     true}};

}  // namespace

std::span<const TableSection> table_sections() { return kSections; }

}  // namespace infer
