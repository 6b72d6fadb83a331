// Numbers that were measured of one run: for each view a table of rows and columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace infer {

/// A cell that is NaN has no number.
struct Row {
  int64_t layer = -1;         // 0 … L; −1: of no layer
  int64_t head = 0;           // from 1; 0: of no head
  std::string label = {};     // of a row that is neither
  std::vector<double> cells;  // one for each column

  bool same_place(const Row& other) const {
    return layer == other.layer && head == other.head && label == other.label;
  }
};

struct Table {
  std::vector<std::string> columns;  // keys
  std::vector<Row> rows;
  std::string note = {};  // how the numbers came about, as a sentence

  /// The row at the same place, or null.
  const Row* find(const Row& place) const;
  /// The index of a column, or −1.
  int64_t column(std::string_view key) const;
};

}  // namespace infer
