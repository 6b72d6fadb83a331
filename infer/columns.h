// The rows of results, joined: of windows of lines that become one file, or of requests that share
// a batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "phasor/results.h"

namespace infer {

class Columns {
 public:
  /// Copies the rows of `count` texts from number `first` behind those that there are. `arrays` are
  /// of one result, of the same call and options as the others; those of the whole call are left
  /// out.
  void add(std::span<const phasor::ResultArray> arrays, int64_t first, int64_t count);

  /// All, borrowed until the next add().
  std::vector<phasor::ResultArray> arrays() const;

  /// Those of one array, and of it those of one text, borrowed alike; of other results none.
  template <typename T>
  std::span<const T> all(std::string_view name) const {
    const auto found = std::ranges::find(columns_, name, &Column::name);
    if (found == columns_.end()) return {};
    return std::get<std::vector<T>>(found->values);
  }
  template <typename T>
  std::span<const T> row(std::string_view name, int64_t text) const {
    const auto found = std::ranges::find(columns_, name, &Column::name);
    if (found == columns_.end()) return {};
    const int64_t width = std::max<int64_t>(found->columns, 1);
    int64_t begin = text, end = text + 1;
    if (found->rows == phasor::ResultArray::Rows::kItems) {
      const auto offsets = all<int64_t>(found->offsets);
      begin = offsets[text];
      end = offsets[text + 1];
    }
    return all<T>(name).subspan(begin * width, (end - begin) * width);
  }

  /// In memory, about.
  int64_t bytes() const;

 private:
  struct Column {
    std::string name;
    std::variant<std::vector<float>, std::vector<int32_t>, std::vector<int64_t>,
                 std::vector<std::string>>
        values;
    int64_t columns;
    phasor::ResultArray::Rows rows;
    std::string offsets;  // of kItems: the name of the column of their offsets
  };
  Column& column_for(const phasor::ResultArray& array, std::span<const phasor::ResultArray> arrays);
  const Column& column(const std::string& name) const;

  std::vector<Column> columns_;
};

}  // namespace infer
