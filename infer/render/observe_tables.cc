// The tables of infer observe that have a row for each layer.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "infer/views/observe_view.h"

namespace infer {
namespace {

constexpr int kBarWidth = 20, kShortBarWidth = 14;

std::string name_of(size_t l) { return l == 0 ? "embed" : fmt::format("{}", l); }

/// Parts of `width` columns in three shades, by their shares.
std::string stacked(const std::array<double, 3>& shares, int width) {
  constexpr std::array<std::string_view, 3> kShades = {"█", "▒", "░"};
  std::string out;
  double sum = 0;
  int used = 0;
  for (size_t part = 0; part < shares.size(); ++part) {
    sum += shares[part];
    for (; used < std::lround(std::min(sum, 1.0) * width); ++used) out += kShades[part];
  }
  return out;
}

/// A table whose cells are made from a layer; where there is a bar, it is for `number`, relative to
/// the longest of the table.
struct Table {
  View view;
  std::string_view title;
  std::string_view meaning;
  std::string_view columns;
  std::optional<double> (*number)(const ObservedLayer&);
  std::string (*cell)(const ObservedLayer&, double share_of_longest);
};

std::string split_cells(const ObservedSplit& split) {
  return fmt::format("{:>6.2f}{:>7.2f}{:>6.2f}  ", split.position, split.group, split.rest) +
         stacked({split.position, split.group, split.rest}, 10);
}

std::string split_cell(const ObservedLayer& layer, double) { return split_cells(*layer.split); }

std::string corpus_cell(const ObservedLayer& layer, double) {
  return split_cells(*layer.corpus_split);
}

std::string probe_cell(const ObservedLayer& layer, double) {
  const phasor::ProbeReport& probe = *layer.probe;
  return fmt::format("{:>7.3f} {:>7.2f} {:>7.3f} {}", probe.held_out.r2,
                     probe.held_out.mean_absolute_error, probe.shuffled.r2,
                     bar(probe.held_out.r2, 7));
}

std::string direct_cell(const ObservedLayer& layer, double share) {
  const phasor::PartShare& direct = *layer.direct_position;
  return fmt::format("{:>7} {:>7}  {}", small_number(direct.norm), small_number(direct.alignment),
                     bar(share, kShortBarWidth));
}

std::string effect_cell(const ObservedLayer& layer, double share) {
  return fmt::format("{:>7}  {}", small_number(*layer.position_effect), bar(share, kBarWidth));
}

std::string order_cell(const ObservedLayer& layer, double) {
  std::string cells;
  for (const double moved : *layer.order) {
    cells += pad_left(small_number(moved), cells.empty() ? 7 : 8);
  }
  return cells;
}

std::string attention_cell(const ObservedLayer& layer, double share) {
  return fmt::format("{:>7.2f} {:>7.2f}  {}", layer.attention->distance,
                     layer.attention->entropy_share, bar(share, kShortBarWidth));
}

constexpr std::array<Table, 7> kTables = {{
    {View::kSplit, "What states are made of: shares of their variance, each token at each place",
     "█ position: where it stands, whatever stands there; ▒ token; ░ both mixed",
     "  pos.  token  rest",
     [](const ObservedLayer& layer) -> std::optional<double> {
       return layer.split ? std::optional(1.0) : std::nullopt;
     },
     split_cell},
    {View::kDirect, "The position vector's own part D of the states h: ‖D‖/‖h‖, ⟨D, h⟩/‖h‖²",
     "what residual connections alone carry; 1: there is nothing else, 0: it is gone",
     " length   share",
     [](const ObservedLayer& layer) -> std::optional<double> {
       return layer.direct_position ? std::optional(layer.direct_position->norm) : std::nullopt;
     },
     direct_cell},
    {View::kEffect, "Moved by positions: mean 1 − cos to the same states without positions",
     "0: positions change nothing; 1: the states are at right angles", "",
     [](const ObservedLayer& layer) { return layer.position_effect; }, effect_cell},
    {View::kOrder, "Moved by a new order: mean ‖h(πx)_π(t) − h(x)_t‖ / ‖h(x)_t‖",
     "0: order does not matter, as without positions; 1.4: as unrelated states",
     "   swap   pairs reverse shuffle",
     [](const ObservedLayer& layer) -> std::optional<double> {
       return layer.order ? std::optional(1.0) : std::nullopt;
     },
     order_cell},
    {View::kAttention, "Attention reaches: mean |i − j| in tokens; its entropy as a share of ln T",
     "entropy 0: each row looks at one token, 1: at all alike", " tokens entropy",
     [](const ObservedLayer& layer) -> std::optional<double> {
       return layer.attention ? std::optional(layer.attention->distance) : std::nullopt;
     },
     attention_cell},
    {View::kCorpus, "What states are made of, over texts: shares of their variance",
     "█ position: where a token stands, whatever the text; ▒ text; ░ the rest",
     "  pos.   text  rest",
     [](const ObservedLayer& layer) -> std::optional<double> {
       return layer.corpus_split ? std::optional(1.0) : std::nullopt;
     },
     corpus_cell},
    {View::kProbe, "A linear probe reads positions off states of texts that it has not seen",
     "R² 1: exactly, 0: no better than the mean; error in tokens; R² of shuffled",
     "     R²   error shuffled",
     [](const ObservedLayer& layer) -> std::optional<double> {
       return layer.probe ? std::optional(1.0) : std::nullopt;
     },
     probe_cell},
}};

double longest(const ObservedPair& pair, const Table& table) {
  double longest = 0;
  for_each_run(pair, [&](std::string_view, const Observed& text) {
    for (const ObservedLayer& layer : text.layers) {
      longest = std::max(longest, table.number(layer).value_or(0));
    }
  });
  return longest;
}

bool has_numbers(const ObservedPair& pair, const Table& table) {
  bool any = false;
  for_each_run(pair, [&](std::string_view, const Observed& text) {
    for (const ObservedLayer& layer : text.layers) any = any || table.number(layer).has_value();
  });
  return any;
}

}  // namespace

void layer_table(View view, const ObservedPair& pair, SideBySide& page) {
  const auto table = std::find_if(kTables.begin(), kTables.end(),
                                  [&](const Table& table) { return table.view == view; });
  const double most = longest(pair, *table);
  const auto cell = [&](const Observed& text, size_t l) -> std::string {
    const std::optional<double> number = table->number(text.layers[l]);
    if (!number) return l == 0 ? "" : pad_left(kNoAnswer, 7);
    return table->cell(text.layers[l], most > 0 ? *number / most : 0);
  };
  page.heading(std::string(table->title));
  if (most == 0 && !has_numbers(pair, *table)) return;
  page.line("  " + std::string(table->meaning));
  begin_columns(pair, "layer", table->columns, page);
  const size_t first = view == View::kAttention ? 1 : 0;
  for (size_t l = first; l < pair.before.layers.size(); ++l) {
    page.row(name_of(l), cell(pair.before, l), pair.after ? cell(*pair.after, l) : "");
  }
}

void begin_columns(const ObservedPair& pair, std::string_view label, std::string_view columns,
                   SideBySide& page) {
  if (pair.after) page.row("", "before", "after");
  if (label.empty() && columns.empty()) return;
  const std::string names(columns);
  page.row(std::string(label), names, pair.after ? names : "");
}

void moved_table(const ObservedPair& pair, SideBySide& page) {
  double most = 0;
  for (const Deviation& moved : pair.moved) most = std::max(most, 1 - moved.mean_cosine());
  page.heading("Moved by the interventions: mean 1 − cos of the states before and after");
  page.line("  0: nothing changed; 1: the states are at right angles");
  for (size_t l = 0; l < pair.moved.size(); ++l) {
    const double distance = std::max(1 - pair.moved[l].mean_cosine(), 0.0);
    page.row(name_of(l),
             fmt::format("{:>7}  {}", small_number(distance),
                         bar(most > 0 ? distance / most : 0, kBarWidth)),
             "");
  }
}

}  // namespace infer
