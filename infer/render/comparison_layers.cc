// The tables of a comparison that have a row for each layer.
#include <fmt/format.h>

#include <algorithm>

#include "infer/render/comparison_tables.h"

namespace infer {
namespace {

constexpr int64_t kNearOffsets = 4;
constexpr int kShortBarWidth = 14;

std::string name_of(size_t l) { return l == 0 ? "embed" : fmt::format("{}", l); }

size_t num_layers(const Comparison& comparison) {
  return std::max(comparison.reports[0].layers.size(), comparison.reports[1].layers.size());
}

/// hidden_states[l] of a side; null where it has fewer.
const ObservedLayer* layer_of(const Comparison& comparison, size_t side, size_t l) {
  const std::vector<ObservedLayer>& layers = comparison.reports[side].layers;
  return l < layers.size() ? &layers[l] : nullptr;
}

/// A row of numbers with bars for each layer from `first` on.
void layer_bars(const Comparison& comparison, SideBySide& page, size_t first, int decimals,
                double (*number)(const ObservedLayer&)) {
  std::vector<std::string> names;
  for (size_t l = first; l < num_layers(comparison); ++l) names.push_back(name_of(l));
  page.bars(names, decimals, [&](size_t side, size_t row) -> SideBySide::Number {
    const ObservedLayer* layer = layer_of(comparison, side, row + first);
    if (layer == nullptr) return std::nullopt;
    return number(*layer);
  });
}

/// A row of text for each layer.
template <typename Make>
void layer_rows(const Comparison& comparison, SideBySide& page, Make make) {
  for (size_t l = 0; l < num_layers(comparison); ++l) {
    page.both(name_of(l), [&](size_t side) -> std::string {
      const ObservedLayer* layer = layer_of(comparison, side, l);
      return layer == nullptr ? "" : make(side, *layer);
    });
  }
}

/// Shares of attention: all that goes farther left, each near offset, all that goes farther right.
std::vector<double> near_offsets(const SideReport& report) {
  std::vector<double> shares(2 * kNearOffsets + 3);
  const auto blocks = static_cast<double>(report.layers.size() - 1);
  for (const ObservedLayer& layer : report.layers) {
    if (!layer.attention) continue;
    for (const auto& [offset, share] : layer.attention->by_offset) {
      const int64_t near = std::clamp(offset, -kNearOffsets - 1, kNearOffsets + 1);
      shares[near + kNearOffsets + 1] += share / blocks;
    }
  }
  return shares;
}

/// Of the next cell: four of them are as wide as a side.
int order_width(const std::string& cells) { return cells.empty() ? 7 : 8; }

}  // namespace

void precision_table(const Comparison& comparison, SideBySide& page) {
  page.line(deviation_head());
  for (size_t l = 0; l < comparison.moved.size(); ++l) {
    page.line(deviation_row(l, comparison.moved[l]));
  }
}

void effect_table(const Comparison& comparison, SideBySide& page) {
  layer_bars(comparison, page, 0, 3,
             [](const ObservedLayer& layer) { return layer.position_effect.value_or(0); });
}

void order_table(const Comparison& comparison, SideBySide& page) {
  std::string kinds;
  for (const std::string_view kind : kReorderingNames) kinds += pad_left(kind, order_width(kinds));
  page.row("", kinds, kinds);
  layer_rows(comparison, page, [&](size_t, const ObservedLayer& layer) {
    std::string cells;
    for (size_t kind = 0; kind < kReorderingNames.size(); ++kind) {
      cells += pad_left(layer.order ? small_number((*layer.order)[kind]) : kNoAnswer,
                        order_width(cells));
    }
    return cells;
  });
}

void attention_tables(const Comparison& comparison, SideBySide& page) {
  layer_bars(comparison, page, 1, 2, [](const ObservedLayer& layer) {
    return layer.attention ? layer.attention->distance : 0;
  });
  page.heading("Attention goes: its share by offset j − i, mean over the layers");
  page.row("offset", comparison.sides[0]->label, comparison.sides[1]->label);
  std::vector<std::string> names = {fmt::format("-{} and less", kNearOffsets + 1)};
  for (int64_t d = -kNearOffsets; d <= kNearOffsets; ++d) {
    names.push_back(d == 0 ? "itself" : fmt::format("{:+}", d));
  }
  names.push_back(fmt::format("+{} and more", kNearOffsets + 1));
  const std::array<std::vector<double>, 2> shares = {near_offsets(comparison.reports[0]),
                                                     near_offsets(comparison.reports[1])};
  page.bars(names, 3, [&](size_t side, size_t row) { return shares[side][row]; });
}

void direct_table(const Comparison& comparison, SideBySide& page) {
  double longest = 0;
  for (const SideReport& report : comparison.reports) {
    for (const ObservedLayer& layer : report.layers) {
      if (layer.direct_position) longest = std::max(longest, layer.direct_position->norm);
    }
  }
  layer_rows(comparison, page, [&](size_t, const ObservedLayer& layer) -> std::string {
    if (!layer.direct_position) return std::string(kNoAnswer);
    const phasor::PartShare& share = *layer.direct_position;
    return fmt::format("{:>7} {:>7}  {}", small_number(share.norm), small_number(share.alignment),
                       bar(longest > 0 ? share.norm / longest : 0, kShortBarWidth));
  });
}

}  // namespace infer
