#include "infer/commands/positions/report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include "infer/render/heat_map.h"
#include "infer/render/observed_text.h"
#include "phasor/lens/table.h"

namespace infer {
namespace {

constexpr int kPositionWidth = 10;  // of the column of positions, two blanks before it included

/// All indices, or where there is no room for so many the first and the last two; −1 stands for
/// those in between.
std::vector<int64_t> ends(int64_t count, int64_t most) {
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < count; ++i) {
    if (count <= most || i < most - 3 || i >= count - 2) {
      chosen.push_back(i);
    } else if (chosen.back() >= 0) {
      chosen.push_back(-1);
    }
  }
  return chosen;
}

std::string line_of(const std::string& label, const std::string& rest) {
  return trimmed(pad_left(label, kPositionWidth) + "  " + rest);
}

/// Four decimals, and no "-0.0000".
std::string rounded(double value) {
  const std::string text = fmt::format("{:.4f}", value);
  return text == "-0.0000" ? "0.0000" : text;
}

/// Where there is a formula: its columns as clock hands.
std::string formula_of(const NamedTable& table, const Output& output) {
  if (!table.layout) return "";
  std::string text;
  if (*table.layout == phasor::SinusoidalLayout::kPaper) {
    const std::string angle = fmt::format("p / {:g}^(2i/{})", table.base, table.width());
    text = fmt::format("PE(p, 2i) = sin({0}), PE(p, 2i + 1) = cos({0}). ", angle);
  }
  constexpr size_t kShown = 3;
  std::vector<std::string> columns, speeds;
  for (const phasor::ColumnPair& pair : table.pairs) {
    if (pair.cosine < 0 || columns.size() == kShown) break;
    columns.push_back(fmt::format("{} and {}", pair.sine, pair.cosine));
    speeds.push_back(fmt::format("{:.3g}", pair.frequency));
  }
  const char* const more = columns.size() < table.pairs.size() ? ", …" : "";
  if (columns.empty()) return text.empty() ? "" : paragraph(text, output.width());
  text += fmt::format(
      "Columns {0}{2} are the sine and cosine of one angle each: clock hands that turn by {1}{2} "
      "rad from one position to the next.",
      fmt::join(columns, ", "), fmt::join(speeds, ", "), more);
  return paragraph(text, output.width());
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
  std::string text = line_of("position", cells([](int64_t c) { return std::to_string(c); }));
  for (const int64_t row : ends(table.rows(), kMostRows)) {
    if (row < 0) {
      text += line_of("…", "");
      continue;
    }
    text += line_of(std::to_string(table.first_position + row),
                    cells([&](int64_t c) { return rounded(table.values.at(row, c)); }));
  }
  return text;
}

std::string image(const NamedTable& table, const Output& output) {
  std::vector<std::string> labels;
  for (int64_t row = 0; row < table.rows(); ++row)
    labels.push_back(std::to_string(table.first_position + row));
  // Means over both would hide the stripes of sine beside cosine.
  const bool interleaved = std::ranges::all_of(table.pairs, [](const phasor::ColumnPair& pair) {
    return pair.frequency > 0 && (pair.cosine < 0 || std::abs(pair.cosine - pair.sine) == 1);
  });
  return heat_map(table.values, labels, output.width(), symmetric_range, interleaved ? 2 : 1);
}

void write_rows(const Matrix& matrix, JsonWriter& json) {
  json.array([&] {
    for (int64_t i = 0; i < matrix.rows; ++i) json.value(matrix.row(i));
  });
}

void write_values(const NamedTable& table, JsonWriter& json) { write_rows(table.values, json); }

void write_pairs(const NamedTable& table, JsonWriter& json) {
  json.array([&] {
    for (const phasor::ColumnPair& pair : table.pairs) {
      json.object("sine", pair.sine, "cosine",
                  pair.cosine < 0 ? std::nullopt : std::optional(pair.cosine), "frequency",
                  pair.frequency > 0 ? std::optional(pair.frequency) : std::nullopt);
    }
  });
}

void write_map(const NamedTable& table, JsonWriter& json) {
  const phasor::PlaneMap plane = phasor::principal_plane(table.values.values, table.width());
  json.object([&] {
    write_rows({plane.points, table.rows(), 2}, json.key("points"));
    json.member("share", plane.share);
  });
}

void write_distances(const NamedTable& table, JsonWriter& json) {
  Matrix distances{
      phasor::row_matrix(table.values.values, table.width(), phasor::RowMeasure::kCosineDistance),
      table.rows(), table.rows()};
  for (int64_t i = 0; i < table.rows(); ++i) distances.values[i * table.rows() + i] = 0;
  write_rows(distances, json);
}

void write_angles(const NamedTable& table, JsonWriter& json) {  // radians
  std::vector<double> angles =
      phasor::clock_angles(table.values.values, table.width(), table.pairs);
  const int64_t pairs = std::ssize(angles) / table.rows();
  write_rows({std::move(angles), table.rows(), pairs}, json);
}

constexpr TableSection kSections[] = {
    {"values", "the numbers", "values", write_values, nullptr, "Values", values},
    {"image", "all of them as a heat map", "values", write_values, nullptr,
     "Image: a row for each position, a column for each number of its vector", image},
    {"curves", "columns over positions", "pairs", write_pairs},
    {"distances", "1 - cos between every two positions", "distances", write_distances},
    {"clock", "the angle of each pair of columns", "angles", write_angles},
    {"map", "the positions in the plane that holds most of their variance", "map", write_map},
    {"properties", "properties of the whole table, beside random tables", "properties", nullptr,
     [](const NamedTables& tables, const phasor::internal::Stages& stages) {
       PropertyColumns columns;
       for (const NamedTable& table : tables) {
         const std::string stage = table.name + ": properties";
         columns.push_back(phasor::table_properties(table.values.values, table.width(), table.pairs,
                                                    stages.of(stage)));
       }
       return columns;
     },
     "Properties"},
    {"against", "how similar two tables are", "against", nullptr,
     [](const NamedTables& tables, const phasor::internal::Stages& stages) {
       const NamedTable &a = tables.at(0), &b = tables.at(1);
       return PropertyColumns{phasor::table_likeness(a.values.values, a.width(), b.values.values,
                                                     b.width(), stages.of("comparison"))};
     },
     "Against each other", nullptr, true}};

std::string number(const std::optional<double>& value, int decimals) {
  if (!value) return "—";
  return decimals == 0 ? fmt::format("{:.0f}", *value) : small_number(*value, decimals);
}

struct NullColumn {
  std::string_view title;
  std::optional<double> TableProperty::*value;
};
constexpr std::string_view kNullsHint =
    "random: the mean of the same number over random tables. smooth: over random tables that are "
    "as smooth along the positions. A number that these have, too, tells nothing of the table.";
constexpr NullColumn kNulls[] = {{"random", &TableProperty::random},
                                 {"smooth", &TableProperty::smooth},
                                 {"±", &TableProperty::smooth_sd}};

/// Rows of numbers, each table's beside those of random tables. Where two tables leave no room for
/// both kinds, that which is as smooth is the more telling.
std::string property_rows(const std::vector<std::string>& names, const PropertyColumns& columns,
                          bool of_two, const Output& output) {
  constexpr int kLabel = 20, kCell = 9, kLongestName = 14;
  const size_t first = columns.size() > 1 ? 1 : 0, last = of_two ? 3 : 2;
  const auto nulls = std::span(kNulls).subspan(first, last - first);
  std::string text = "  " + pad_right("", kLabel);
  std::vector<int> widths;
  for (const std::string& name : names) {
    const std::string shown = cut_right(printable(name), kLongestName);
    widths.push_back(std::max(display_width(shown) + 2, kCell));
    text += pad_left(shown, widths.back());
    for (const NullColumn& null : nulls) text += pad_left(null.title, kCell);
  }
  text += "\n";
  // A table without frequencies lacks the wavelengths.
  for (const TableProperty& row :
       *std::ranges::max_element(columns, {}, [](auto& c) { return c.size(); })) {
    std::string line = pad_right(row.label, kLabel);
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto found = std::ranges::find(columns[i], row.key, &TableProperty::key);
      const bool there = found != columns[i].end();
      line += pad_left(number(there ? found->value : std::nullopt, row.decimals), widths[i]);
      for (const NullColumn& null : nulls) {
        const std::optional<double> value = there ? (*found).*null.value : std::nullopt;
        line += pad_left(value ? number(value, row.decimals) : "", kCell);
      }
    }
    const int room = output.width() - display_width(line) - 5;
    if (room >= 20) line += "   " + cut_right(row.meaning, room);
    text += trimmed("  " + line);
  }
  return text;
}

void write_numbers(const std::vector<TableProperty>& properties, JsonWriter& json) {
  json.object([&] {
    for (const TableProperty& each : properties) {
      json.key(each.key).object("label", each.label, "meaning", each.meaning, "value", each.value,
                                "random", each.random, "smooth", each.smooth, "smooth_sd",
                                each.smooth_sd);
    }
  });
}

}  // namespace

std::span<const TableSection> table_sections() { return kSections; }

PositionsReport measure(std::span<const TableSection> sections, NamedTables tables,
                        const phasor::internal::Stages& stages) {
  PositionsReport report{.tables = std::move(tables), .numbers = {}};
  for (const TableSection& section : sections) {
    if (section.measure) report.numbers[section.name] = section.measure(report.tables, stages);
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
            "\n" + formula_of(table, output);
  }
  const auto add = [&](const std::string& heading, const std::string& body) {
    text += fmt::format("\n{}\n{}", output.heading(heading), body);
  };
  std::vector<std::string_view> drawn;
  for (const TableSection& section : sections) {
    const std::string title(section.title);
    if (title.empty()) drawn.push_back(section.name);
    if (section.measure) {
      add(title, paragraph(kNullsHint, output.width()) +
                     property_rows(section.of_two ? std::vector<std::string>{"value"} : names,
                                   report.numbers.at(section.name), section.of_two, output));
    }
    for (const NamedTable& table : report.tables) {
      if (!section.text) break;
      add(names.size() > 1 ? table.name + ", " + title : title, section.text(table, output));
    }
  }
  if (!drawn.empty()) text += fmt::format("\n--html FILE draws: {}\n", fmt::join(drawn, ", "));
  return text;
}

std::string to_json(const PositionsReport& report, std::span<const TableSection> sections) {
  JsonWriter json;
  const auto write_table = [&](size_t i) {
    const NamedTable& table = report.tables[i];
    std::optional<std::string_view> layout;
    if (table.layout) layout = phasor::to_string(*table.layout);
    json.member("name", table.name, "kind", table.kind, "layout", layout, "base",
                table.layout ? std::optional(table.base) : std::nullopt, "first_position",
                table.first_position, "length", table.rows(), "width", table.width());
    std::set<std::string_view> written;  // two sections may show the same numbers
    for (const TableSection& section : sections) {
      if (section.of_two || !written.insert(section.key).second) continue;
      json.key(section.key);
      section.measure ? write_numbers(report.numbers.at(section.name)[i], json)
                      : section.json(table, json);
    }
  };
  json.object([&] {
    json.key("tables").array([&] {
      for (size_t i = 0; i < report.tables.size(); ++i) json.object([&] { write_table(i); });
    });
    for (const TableSection& section : sections) {
      if (section.of_two)
        write_numbers(report.numbers.at(section.name).at(0), json.key(section.key));
    }
  });
  return json.take();
}

std::string to_csv(const NamedTable& table) {
  std::string text = "position";
  for (int64_t c = 0; c < table.width(); ++c) text += fmt::format(",{}", c);
  for (int64_t p = 0; p < table.rows(); ++p)
    text += fmt::format("\n{},{}", table.first_position + p, fmt::join(table.values.row(p), ","));
  return text + "\n";
}

}  // namespace infer
