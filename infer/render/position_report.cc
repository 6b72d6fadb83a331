// Puts the sections about tables together, as text and as JSON, and writes a table as CSV.
#include "infer/render/position_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace infer {
namespace {

using Json = nlohmann::ordered_json;

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
