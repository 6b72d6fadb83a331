// Tables of position vectors from wherever they come: a formula, a model, a file, or chance.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "infer/matrix.h"
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

}  // namespace infer
