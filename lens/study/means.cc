#include "lens/study/means.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "files/spelling.h"

namespace phasor::internal {
namespace {

/// The columns of a view; of "offsets", which has one for each offset, those of all texts.
std::vector<std::string> columns_of(const View& view, const std::set<std::string>& keys) {
  std::vector<std::string> columns;
  for (const Column& column : view.columns) columns.emplace_back(column.key);
  if (std::set(columns.begin(), columns.end()) == keys) return columns;
  columns.assign(keys.begin(), keys.end());
  const auto number = [](const std::string& key) { return parse_number<int64_t>(key).value_or(0); };
  std::ranges::sort(columns, {}, number);
  return columns;
}

}  // namespace

void Means::add_to(Sums& sums, double value) const {
  const size_t block = texts_ % kMostBlocks;
  if (sums.size() <= block) sums.resize(block + 1);
  sums[block] += value;
}

Estimate Means::estimate_of(const Sum& sum, const Cell& cell, Intervals* intervals) const {
  Sums sums = cell.sums, weights = sum.weights;
  sums.resize(std::min(texts_, kMostBlocks));
  weights.resize(sums.size());
  for (size_t i = 0; i < cell.absent.size(); ++i) weights[i] -= cell.absent[i];
  const double weight = std::accumulate(weights.begin(), weights.end(), 0.0);
  Estimate estimate{.mean = std::nan(""), .interval = {std::nan(""), std::nan("")}};
  if (!(weight > 0)) return estimate;
  estimate.mean = std::accumulate(sums.begin(), sums.end(), 0.0) / weight;
  if (intervals != nullptr) estimate.interval = intervals->of(sums, weights);
  return estimate;
}

void Means::add(const Observed& text) {
  const auto weight = static_cast<double>(text.num_tokens);
  for (const auto& [name, table] : text.tables) {
    std::vector<Sum>& sums = sums_[name];
    for (size_t r = 0; r < table.rows.size(); ++r) {
      const Row& row = table.rows[r];
      const bool same = r < sums.size() && sums[r].place.same_place(row);
      auto sum = same ? sums.begin() + static_cast<std::ptrdiff_t>(r)
                      : std::ranges::find_if(
                            sums, [&](const Sum& known) { return known.place.same_place(row); });
      if (sum == sums.end()) {
        sums.push_back({.place = {row.layer, row.head, row.label, {}, {}}});
        sum = sums.end() - 1;
      }
      add_to(sum->weights, weight);
      for (size_t c = 0; c < row.cells.size(); ++c) {
        const bool absent = std::isnan(row.cells[c]);
        Cell& cell = sum->cells[table.columns[c]];
        add_to(absent ? cell.absent : cell.sums, absent ? weight : weight * row.cells[c]);
      }
    }
  }
  ++texts_;
  mean_.num_tokens += text.num_tokens;
  mean_.num_cut += text.num_cut;
  mean_.tokens.dropped += text.tokens.dropped;
  mean_.tokens.invalid_bytes += text.tokens.invalid_bytes;
  mean_.mask_as_text |= text.mask_as_text;
  for (const auto& [view, why] : text.missing) {
    ++missing_[view].first;
    missing_[view].second = why;
  }
}

Observed Means::result() const {
  Intervals intervals;
  Observed mean = mean_;
  mean.means = true;
  mean.num_texts = texts_;
  for (const auto& [name, sums] : sums_) {
    Table& table = mean.tables[name];
    std::set<std::string> all;
    for (const Sum& sum : sums) {
      for (const auto& [column, cell] : sum.cells) all.insert(column);
    }
    table.columns = columns_of(view(name), all);
    std::set<std::string_view> known;
    for (const Column& column : view(name).columns) known.insert(column.key);
    for (const Sum& sum : sums) {
      Row& row = table.rows.emplace_back(sum.place);
      for (const std::string& column : table.columns) {
        const auto found = sum.cells.find(column);
        const Estimate cell = estimate_of(sum, found == sum.cells.end() ? Cell() : found->second,
                                          known.contains(column) ? &intervals : nullptr);
        add_cell(row, cell.mean, cell.interval);
      }
    }
  }
  for (const auto& [view, texts_and_why] : missing_) {
    if (texts_and_why.first == texts_) mean.missing[view] = texts_and_why.second;
  }
  return mean;
}

Interval Intervals::of(std::span<const double> sums, std::span<const double> weights) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (std::ranges::count_if(weights, [](double w) { return w > 0; }) < 2 || sums.empty())
    return {kNaN, kNaN};
  if (!draws_ || draws_->num_texts() != std::ssize(sums)) draws_.emplace(std::ssize(sums));
  return draws_->ratio(sums, weights);
}

Estimate estimate(std::span<const double> values, std::span<const int64_t> texts) {
  const int64_t most = values.empty() ? -1 : std::ranges::max(texts);
  std::vector<double> sums(std::min(most + 1, kMostBlocks)), weights(sums.size());
  for (size_t i = 0; i < values.size(); ++i) {
    sums[texts[i] % kMostBlocks] += values[i];
    ++weights[texts[i] % kMostBlocks];
  }
  const double count = static_cast<double>(values.size());
  return {.mean = count > 0 ? std::accumulate(sums.begin(), sums.end(), 0.0) / count : 0,
          .interval = Intervals().of(sums, weights)};
}

}  // namespace phasor::internal
