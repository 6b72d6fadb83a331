#include "infer/columns.h"

#include <algorithm>

namespace infer {
namespace {

using phasor::ResultArray;
using Rows = ResultArray::Rows;

/// The name of the array that is these offsets.
std::string name_of(std::span<const int64_t> offsets, std::span<const ResultArray> arrays) {
  for (const ResultArray& array : arrays) {
    if (array.rows != Rows::kOffsets) continue;
    if (std::get<std::span<const int64_t>>(array.values).data() == offsets.data())
      return std::string(array.name);
  }
  return {};
}

}  // namespace

Columns::Column& Columns::column_for(const ResultArray& array,
                                     std::span<const ResultArray> arrays) {
  const auto found = std::ranges::find(columns_, array.name, &Column::name);
  if (found != columns_.end()) return *found;
  Column& made = columns_.emplace_back(
      Column{std::string(array.name),
             std::visit(
                 [](auto values) -> decltype(Column::values) {
                   return std::vector<typename decltype(values)::value_type>();
                 },
                 array.values),
             array.columns, array.rows, name_of(array.offsets, arrays)});
  if (array.rows == Rows::kOffsets) made.values = std::vector<int64_t>{0};
  return made;
}

const Columns::Column& Columns::column(const std::string& name) const {
  return *std::ranges::find(columns_, name, &Column::name);
}

void Columns::add(std::span<const ResultArray> arrays, int64_t first, int64_t count) {
  for (const ResultArray& array : arrays) {
    if (array.rows == Rows::kCall) continue;
    Column& column = column_for(array, arrays);
    if (array.rows == Rows::kOffsets) {
      const auto offsets = std::get<std::span<const int64_t>>(array.values).subspan(first);
      auto& all = std::get<std::vector<int64_t>>(column.values);
      const int64_t end = all.back();
      for (int64_t i = 1; i <= count; ++i) all.push_back(end + offsets[i] - offsets[0]);
      continue;
    }
    const bool items = array.rows == Rows::kItems;
    const int64_t width = std::max<int64_t>(array.columns, 1);
    const int64_t begin = width * (items ? array.offsets[first] : first);
    const int64_t end = width * (items ? array.offsets[first + count] : first + count);
    std::visit(
        [&](auto values) {
          auto& all = std::get<std::vector<typename decltype(values)::value_type>>(column.values);
          all.insert(all.end(), values.begin() + begin, values.begin() + end);
        },
        array.values);
  }
}

std::vector<ResultArray> Columns::arrays() const {
  std::vector<ResultArray> arrays;
  for (const Column& each : columns_) {
    ResultArray array = {.name = each.name,
                         .values = std::span<const int64_t>(),
                         .columns = each.columns,
                         .rows = each.rows};
    const int64_t numbers = std::visit(
        [&](const auto& values) {
          array.values = std::span(values);
          return std::ssize(values);
        },
        each.values);
    if (each.rows == Rows::kItems) {
      array.offsets = std::get<std::vector<int64_t>>(column(each.offsets).values);
      // An array that was not asked for may be listed where there are no rows.
      if (numbers != array.offsets.back() * std::max<int64_t>(array.columns, 1)) continue;
    }
    arrays.push_back(array);
  }
  return arrays;
}

int64_t Columns::bytes() const {
  size_t bytes = 0;
  for (const Column& each : columns_) {
    bytes += std::visit(
        [](const auto& values) {
          return values.capacity() * sizeof(typename std::decay_t<decltype(values)>::value_type);
        },
        each.values);
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace infer
