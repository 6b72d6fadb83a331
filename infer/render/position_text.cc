// A page about tables of position vectors for a terminal.
#include <fmt/format.h>

#include <algorithm>

#include "infer/render/position_report.h"
#include "infer/render/side_by_side.h"

namespace infer {
namespace {

std::string number(const std::optional<double>& value, int decimals) {
  if (!value) return std::string(kNoAnswer);
  return decimals == 0 ? fmt::format("{:.0f}", *value) : small_number(*value, decimals);
}

/// Rows of numbers, each table's beside that of random rows.
std::string property_rows(const std::vector<std::string>& names,
                          const std::vector<std::vector<Property>>& columns, const Output& output) {
  constexpr int kLabel = 20, kCell = 9, kLongestName = 14;
  std::string head = pad_right("", kLabel);
  std::vector<int> widths;
  for (const std::string& name : names) {
    const std::string shown = cut_right(printable(name), kLongestName);
    widths.push_back(std::max(display_width(shown) + 2, kCell));
    head += pad_left(shown, widths.back()) + pad_left("random", kCell);
  }
  std::string text = "  " + head + "\n";
  std::vector<Property> rows;
  for (const auto& column : columns) {
    for (const Property& property : column) {
      const auto same = [&](const Property& row) { return row.key == property.key; };
      if (std::ranges::none_of(rows, same)) rows.push_back(property);
    }
  }
  // What only the second table has stands before what both have.
  std::stable_partition(rows.begin(), rows.end(),
                        [](const Property& row) { return row.key.ends_with("wavelength"); });
  for (const Property& row : rows) {
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

/// The numbers of all tables, or of one against the other.
std::string numbers_text(const PositionsPage& page, TableSection section, const Output& output) {
  if (section == TableSection::kAgainst) return property_rows({"value"}, {page.against}, output);
  std::vector<std::string> names;
  for (const NamedTable& table : page.tables) names.push_back(table.name);
  return property_rows(names, page.properties, output);
}

constexpr std::array<const char*, kTableSectionNames.size()> kTitles = {
    "Values",
    "Image: rows are positions, columns are columns",
    "Curves: columns over positions",
    "Distances: 1 − cos between every two positions",
    "Clock hands: each pair of columns (sine, cosine) as an angle, clockwise from twelve",
    "Map: the positions in the plane that holds most of their variance, joined in order",
    "Properties",
    "Against each other"};

}  // namespace

std::string to_text(const PositionsPage& page, const Output& output) {
  std::string text;
  for (const NamedTable& table : page.tables) {
    text += output.heading(fmt::format("{} {} × {} columns, {}", table.rows(),
                                       table.rows() == 1 ? "position" : "positions", table.width(),
                                       printable(table.description))) +
            "\n";
  }
  for (const TableSection section : page.sections) {
    const char* const title = kTitles[static_cast<size_t>(section)];
    if (section == TableSection::kProperties || section == TableSection::kAgainst) {
      text += fmt::format("\n{}\n{}", output.heading(title), numbers_text(page, section, output));
      continue;
    }
    for (const NamedTable& table : page.tables) {
      const bool named = page.tables.size() > 1;
      const std::string heading = named ? fmt::format("{}, {}", table.name, title) : title;
      text +=
          fmt::format("\n{}\n{}", output.heading(heading), section_text(section, table, output));
    }
  }
  return text;
}

}  // namespace infer
