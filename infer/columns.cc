#include "infer/columns.h"

#include <algorithm>

namespace infer {
namespace {

using phasor::Part;
using Rows = Part::Rows;

/// The name of the part that is these offsets.
std::string name_of(std::span<const int64_t> offsets, std::span<const Part> parts) {
  for (const Part& part : parts) {
    if (part.rows != Rows::kOffsets) continue;
    if (std::get<std::span<const int64_t>>(part.values).data() == offsets.data())
      return std::string(part.name);
  }
  return {};
}

}  // namespace

Columns::Column& Columns::column_for(const Part& part, std::span<const Part> parts) {
  const auto found = std::ranges::find(columns_, part.name, &Column::name);
  if (found != columns_.end()) return *found;
  Column& made = columns_.emplace_back(
      Column{std::string(part.name),
             std::visit(
                 [](auto values) -> decltype(Column::values) {
                   return std::vector<typename decltype(values)::value_type>();
                 },
                 part.values),
             part.columns, part.rows, name_of(part.offsets, parts)});
  if (part.rows == Rows::kOffsets) made.values = std::vector<int64_t>{0};
  return made;
}

const Columns::Column& Columns::column(const std::string& name) const {
  return *std::ranges::find(columns_, name, &Column::name);
}

void Columns::add(std::span<const Part> parts, int64_t first, int64_t count) {
  for (const Part& part : parts) {
    if (part.rows == Rows::kCall) continue;
    Column& column = column_for(part, parts);
    if (part.rows == Rows::kOffsets) {
      const auto offsets = std::get<std::span<const int64_t>>(part.values).subspan(first);
      auto& all = std::get<std::vector<int64_t>>(column.values);
      const int64_t end = all.back();
      for (int64_t i = 1; i <= count; ++i) all.push_back(end + offsets[i] - offsets[0]);
      continue;
    }
    const bool items = part.rows == Rows::kItems;
    const int64_t width = std::max<int64_t>(part.columns, 1);
    const int64_t begin = width * (items ? part.offsets[first] : first);
    const int64_t end = width * (items ? part.offsets[first + count] : first + count);
    std::visit(
        [&](auto values) {
          auto& all = std::get<std::vector<typename decltype(values)::value_type>>(column.values);
          all.insert(all.end(), values.begin() + begin, values.begin() + end);
        },
        part.values);
  }
}

std::vector<Part> Columns::parts() const {
  std::vector<Part> parts;
  for (const Column& each : columns_) {
    Part part = {.name = each.name,
                 .values = std::span<const int64_t>(),
                 .columns = each.columns,
                 .rows = each.rows};
    const int64_t numbers = std::visit(
        [&](const auto& values) {
          part.values = std::span(values);
          return std::ssize(values);
        },
        each.values);
    if (each.rows == Rows::kItems) {
      part.offsets = std::get<std::vector<int64_t>>(column(each.offsets).values);
      // A part that was not asked for may be listed where there are no rows.
      if (numbers != part.offsets.back() * std::max<int64_t>(part.columns, 1)) continue;
    }
    parts.push_back(part);
  }
  return parts;
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
