// What infer positions shows of one table or two: sections, each described once, as text and JSON.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "infer/cli/terminal.h"
#include "infer/commands/positions/table.h"
#include "lens/study/run.h"
#include "phasor/lens/properties.h"

namespace infer {

/// Tables, of which there are two only if both have as many rows.
using NamedTables = std::vector<NamedTable>;
using phasor::TableProperty;
using PropertyColumns = std::vector<std::vector<TableProperty>>;

/// A part of the report. It either shows each table by itself (`json`), or numbers (`measure`): a
/// column for each table, or one of both. What a terminal does not show has no title.
struct TableSection {
  std::string_view name;  // of --only
  std::string_view hint;  // in the help
  std::string_view key;   // in JSON
  void (*json)(const NamedTable&, JsonWriter&) = nullptr;
  PropertyColumns (*measure)(const NamedTables&, const phasor::internal::Stages&) = nullptr;
  std::string_view title = {};
  std::string (*text)(const NamedTable&, const Output&) = nullptr;
  bool of_two = false;  // needs two tables
};

/// All of them, in their order.
std::span<const TableSection> table_sections();

struct PositionsReport {
  NamedTables tables;
  std::map<std::string_view, PropertyColumns> numbers;  // by the section's name
};

/// Measures what the sections need.
PositionsReport measure(std::span<const TableSection> sections, NamedTables tables,
                        const phasor::internal::Stages& stages);

std::string to_text(const PositionsReport& report, std::span<const TableSection> sections,
                    const Output& output);
/// All the numbers of the sections.
std::string to_json(const PositionsReport& report, std::span<const TableSection> sections);
/// "position,0,1,2,…" and a line for each row, with all digits.
std::string to_csv(const NamedTable& table);

}  // namespace infer
