// Tables of position vectors from wherever they come (a formula, a model, a file, or chance), and
// what infer positions shows of one or two: sections, each described once, as text and JSON.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "infer/cli/terminal.h"
#include "infer/matrix.h"
#include "lens/study/run.h"
#include "phasor/lens/properties.h"
#include "phasor/positions.h"
#include "phasor/tokenizer.h"

namespace infer {

/// A table and how it came about.
struct NamedTable {
  std::string name;            // "paper", "learned", "table.npy"
  std::string description;     // "sinusoidal (paper), base 10000"
  std::string kind;            // sinusoidal, learned, file, random
  Matrix values;               // [T, d]
  int64_t first_position = 0;  // of row 0
  /// Where a formula made it.
  std::optional<phasor::SinusoidalLayout> layout = {};
  double base = 0;
  /// Columns that turn together: the layout's, else every two neighbours with frequency 0.
  std::vector<phasor::ColumnPair> pairs = {};

  int64_t rows() const { return values.rows; }
  int64_t width() const { return values.columns; }
};

inline constexpr int64_t kMaxTableSize = 4096;

/// How large a table shall be, each up to kMaxTableSize; empty where that is left to the table.
struct TableSize {
  std::optional<int64_t> length = {};
  std::optional<int64_t> width = {};  // of those that are computed
  std::optional<double> base = {};    // likewise
};

/// What a table is called on the command line: a layout, "random", a file (.npy, .safetensors) or
/// else a model.
bool is_computed(const std::string& name);

/// Throws InvalidArgument (a size that the table cannot have, a model without position vectors),
/// UsageError (a base that no table has) and ModelError.
NamedTable find_table(const std::string& name, const TableSize& size,
                      const phasor::LoadOptions& options = {});

/// Without its rows from `rows` on.
NamedTable first_rows(NamedTable table, int64_t rows);

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
