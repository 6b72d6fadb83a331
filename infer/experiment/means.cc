#include "infer/experiment/means.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "infer/views/view.h"

namespace infer {
namespace {

/// The columns of a view; of "offsets", which has one for each offset, those of all texts.
std::vector<std::string> columns_of(const View& view, const std::set<std::string>& keys) {
  std::vector<std::string> columns;
  for (const Column& column : view.columns) columns.emplace_back(column.key);
  if (std::set(columns.begin(), columns.end()) == keys) return columns;
  columns.assign(keys.begin(), keys.end());
  const auto number = [](const std::string& key) {
    int64_t value = 0;
    std::from_chars(key.data(), key.data() + key.size(), value);
    return value;
  };
  std::ranges::sort(columns, {}, number);
  return columns;
}

}  // namespace

void Means::add(const Observed& text) {
  const auto weight = static_cast<double>(text.num_tokens());
  for (const auto& [name, table] : text.tables) {
    std::vector<Sum>& sums = sums_[name];
    for (size_t r = 0; r < table.rows.size(); ++r) {
      const Row& row = table.rows[r];
      const bool same = r < sums.size() && sums[r].place.same_place(row);
      auto sum = same ? sums.begin() + static_cast<std::ptrdiff_t>(r)
                      : std::ranges::find_if(
                            sums, [&](const Sum& known) { return known.place.same_place(row); });
      if (sum == sums.end()) {
        sums.push_back({.place = {row.layer, row.head, row.label, {}}});
        sum = sums.end() - 1;
      }
      sum->weight += weight;
      for (size_t c = 0; c < row.cells.size(); ++c) {
        const bool absent = std::isnan(row.cells[c]);
        Cell& cell = sum->cells[table.columns[c]];
        (absent ? cell.absent : cell.sum) += absent ? weight : weight * row.cells[c];
      }
    }
  }
  ++texts_;
  tokens_ += text.num_tokens();
  for (const auto& [view, why] : text.missing) {
    ++missing_[view].first;
    missing_[view].second = why;
  }
}

Observed Means::result() const {
  Observed mean = mean_;
  for (const auto& [name, sums] : sums_) {
    Table& table = mean.tables[name];
    std::set<std::string> all;
    for (const Sum& sum : sums) {
      for (const auto& [column, cell] : sum.cells) all.insert(column);
    }
    table.columns = columns_of(view(name), all);
    for (const Sum& sum : sums) {
      Row& row = table.rows.emplace_back(sum.place);
      for (const std::string& column : table.columns) {
        const auto found = sum.cells.find(column);
        const Cell cell = found == sum.cells.end() ? Cell() : found->second;
        const double weight = sum.weight - cell.absent;
        row.cells.push_back(weight > 0 ? cell.sum / weight : std::nan(""));
      }
    }
  }
  for (const auto& [view, texts_and_why] : missing_) {
    if (texts_and_why.first == texts_) mean.missing[view] = texts_and_why.second;
  }
  return mean;
}

}  // namespace infer
