// How results list their arrays.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "phasor/results.h"

namespace phasor::internal {

/// The numbers of spans [N, 2].
std::span<const int64_t> numbers_of(const std::vector<TextSpan>& spans);

void add_reports(const TextReports& reports, std::vector<ResultArray>& arrays);

/// Adds the arrays of texts that have several rows each.
class ItemArrays {
 public:
  ItemArrays(std::string_view name, const std::vector<int64_t>& offsets,
             std::vector<ResultArray>& arrays)
      : offsets_(offsets), arrays_(arrays) {
    arrays_.push_back({name, offsets_, 0, ResultArray::Rows::kOffsets});
  }
  template <typename T>
  void add(std::string_view name, std::span<const T> values, int64_t columns = 0) {
    arrays_.push_back({name, values, columns, ResultArray::Rows::kItems, offsets_});
  }

 private:
  const std::span<const int64_t> offsets_;
  std::vector<ResultArray>& arrays_;
};

}  // namespace phasor::internal
