#include "lens/study/observed.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace phasor::internal {

void add_cell(Row& row, double cell, Interval interval) {
  row.cells.push_back(cell);
  row.intervals.push_back(interval);
}

void add_row(Observed& observed, std::string_view name, Row row) {
  Table& table = observed.tables[std::string(name)];
  if (table.columns.empty()) {
    for (const Column& column : view(name).columns) table.columns.emplace_back(column.key);
  }
  if (row.cells.size() != table.columns.size()) {
    throw std::logic_error(fmt::format("a row of the view {} has {} cells, not {}", name,
                                       row.cells.size(), table.columns.size()));
  }
  table.rows.push_back(std::move(row));
}

void keep_views(Observed& observed, std::span<const std::string> names) {
  if (names.empty() || std::ranges::count(names, "all") > 0) return;
  const auto other = [&](const auto& entry) { return std::ranges::count(names, entry.first) == 0; };
  std::erase_if(observed.tables, other);
  std::erase_if(observed.missing, other);
}

std::vector<BlockPart> block_parts(int64_t num_layers, int64_t num_heads) {
  using enum ResidualSource;
  std::vector<BlockPart> parts;
  for (int64_t l = 0; l < num_layers; ++l)
    parts.push_back({fmt::format("attention {}", l + 1), kAttention, l});
  for (int64_t l = 0; l < num_layers; ++l) parts.push_back({fmt::format("MLP {}", l + 1), kMlp, l});
  for (int64_t l = 0; l < num_layers; ++l) {
    for (int64_t h = 0; h < num_heads; ++h)
      parts.push_back({fmt::format("head {}.{}", l + 1, h + 1), kAttention, l, h});
  }
  return parts;
}

std::string name_of(HeadNumber head) {
  return fmt::format("{}.{} (L{}H{})", head.layer, head.head, head.layer - 1, head.head - 1);
}

std::optional<HeadNumber> most_positional_head(const Observed& text) {
  const Table* const table = text.table("heads");
  if (table == nullptr || table->rows.empty()) return std::nullopt;
  const int64_t previous = table->column("previous"), next = table->column("next");
  const auto weight = [&](const Row& row) {
    return std::max(row.cells[previous], row.cells[next]);
  };
  const auto best = std::ranges::max_element(table->rows, {}, weight);
  return HeadNumber{best->layer, best->head};
}

}  // namespace phasor::internal

namespace phasor::lens {

const Row* Table::find(const Row& place) const {
  const auto found =
      std::ranges::find_if(rows, [&](const Row& row) { return row.same_place(place); });
  return found == rows.end() ? nullptr : &*found;
}

int64_t Table::column(std::string_view key) const {
  const auto found = std::ranges::find(columns, key);
  return found == columns.end() ? -1 : found - columns.begin();
}

const Table* Observed::table(std::string_view name) const {
  const auto found = tables.find(name);
  return found == tables.end() ? nullptr : &found->second;
}

}  // namespace phasor::lens
