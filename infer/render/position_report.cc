// The sections about tables, each described once, and the report that puts them together.
#include "infer/render/position_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "infer/render/heat_map.h"
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
    {"properties", "Properties", "properties of the whole table, beside a table of random rows",
     "properties", nullptr, nullptr,
     [](const NamedTables& tables, Progress& progress) {
       PropertyColumns columns;
       for (const NamedTable& table : tables) columns.push_back(properties(table, progress));
       return columns;
     }},
    {"against", "Against each other", "how similar two tables are", "against", nullptr, nullptr,
     [](const NamedTables& tables, Progress&) {
       return PropertyColumns{likeness(tables.at(0), tables.at(1))};
     },
     true}};

std::string number(const std::optional<double>& value, int decimals) {
  if (!value) return "—";
  return decimals == 0 ? fmt::format("{:.0f}", *value) : small_number(*value, decimals);
}

/// Rows of numbers, each table's beside that of random rows.
std::string property_rows(const std::vector<std::string>& names, const PropertyColumns& columns,
                          const Output& output) {
  constexpr int kLabel = 20, kCell = 9, kLongestName = 14;
  std::string text = "  " + pad_right("", kLabel);
  std::vector<int> widths;
  for (const std::string& name : names) {
    const std::string shown = cut_right(printable(name), kLongestName);
    widths.push_back(std::max(display_width(shown) + 2, kCell));
    text += pad_left(shown, widths.back()) + pad_left("random", kCell);
  }
  text += "\n";
  // A table without frequencies lacks the wavelengths.
  for (const Property& row :
       *std::ranges::max_element(columns, {}, [](auto& c) { return c.size(); })) {
    std::string line = pad_right(row.label, kLabel);
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto found = std::ranges::find(columns[i], row.key, &Property::key);
      const bool there = found != columns[i].end();
      line += pad_left(number(there ? found->value : std::nullopt, row.decimals), widths[i]);
      line += pad_left(there && found->random ? number(found->random, row.decimals) : "", kCell);
    }
    const int room = output.width() - display_width(line) - 5;
    if (room >= 20) line += "   " + cut_right(row.meaning, room);
    line.erase(line.find_last_not_of(' ') + 1);
    text += "  " + line + "\n";
  }
  return text;
}

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json numbers(const std::vector<Property>& properties) {
  Json json = Json::object();
  for (const Property& property : properties) {
    json[std::string(property.key)] = {{"value", number(property.value)},
                                       {"random", number(property.random)}};
  }
  return json;
}

}  // namespace

std::span<const TableSection> table_sections() { return kSections; }

PositionsReport measure(std::span<const TableSection> sections, NamedTables tables,
                        Progress& progress) {
  PositionsReport report{.tables = std::move(tables), .numbers = {}};
  for (const TableSection& section : sections) {
    if (section.measure) report.numbers[section.name] = section.measure(report.tables, progress);
  }
  return report;
}

std::string to_text(const PositionsReport& report, std::span<const TableSection> sections,
                    const Output& output) {
  std::string text;
  std::vector<std::string> names;
  for (const NamedTable& table : report.tables) {
    names.push_back(table.name);
    text += output.heading(fmt::format("{} {} × {} columns, {}", table.rows(),
                                       table.rows() == 1 ? "position" : "positions", table.width(),
                                       printable(table.description))) +
            "\n";
  }
  const auto add = [&](const std::string& heading, const std::string& body) {
    text += fmt::format("\n{}\n{}", output.heading(heading), body);
  };
  for (const TableSection& section : sections) {
    const std::string title(section.title);
    if (section.measure) {
      add(title, property_rows(section.of_two ? std::vector<std::string>{"value"} : names,
                               report.numbers.at(section.name), output));
      continue;
    }
    for (const NamedTable& table : report.tables) {
      add(names.size() > 1 ? table.name + ", " + title : title, section.text(table, output));
    }
  }
  return text;
}

Json to_json(const PositionsReport& report, std::span<const TableSection> sections) {
  Json json = {{"tables", Json::array()}};
  for (const NamedTable& table : report.tables) {
    json["tables"].push_back(
        {{"name", table.name},
         {"kind", table.kind},
         {"layout", table.layout ? Json(phasor::to_string(*table.layout)) : Json()},
         {"base", table.layout ? Json(table.base) : Json()},
         {"first_position", table.first_position},
         {"length", table.rows()},
         {"width", table.width()}});
  }
  for (const TableSection& section : sections) {
    const std::string key(section.key);
    if (section.of_two) {
      json[key] = numbers(report.numbers.at(section.name).at(0));
      continue;
    }
    for (size_t i = 0; i < report.tables.size(); ++i) {
      Json& table = json["tables"][i];
      if (table.contains(key)) continue;  // two sections may show the same numbers
      table[key] = section.measure ? numbers(report.numbers.at(section.name)[i])
                                   : section.json(report.tables[i]);
    }
  }
  return json;
}

std::string to_csv(const NamedTable& table) {
  std::string text = "position";
  for (int64_t c = 0; c < table.width(); ++c) text += fmt::format(",{}", c);
  for (int64_t p = 0; p < table.rows(); ++p) {
    text += fmt::format("\n{},{}", table.first_position + p, fmt::join(table.values.row(p), ","));
  }
  return text + "\n";
}

}  // namespace infer
