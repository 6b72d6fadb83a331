// What infer observe prints about attention: by offset, positional heads, a pattern, and scores.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "infer/render/heat_map.h"
#include "infer/views/numbers.h"
#include "infer/views/observe_view.h"

namespace infer {
namespace {

constexpr int64_t kNearOffsets = 3;
constexpr int64_t kMostPatternTokens = 32;

/// "23▃": percent, and a bar of one character, the highest for `most`.
std::string offset_cell(double share, double most) {
  constexpr std::array<std::string_view, 9> kHeights = {" ", "▁", "▂", "▃", "▄",
                                                        "▅", "▆", "▇", "█"};
  const auto height = static_cast<size_t>(std::lround(std::clamp(share / most, 0.0, 1.0) * 8));
  return fmt::format("{:>3.0f}", 100 * share) + std::string(kHeights[height]);
}

double greatest_share(const ObservedPair& pair) {
  double most = 1e-9;
  for_each_run(pair, [&](std::string_view, const Observed& text) {
    for (const ObservedLayer& layer : text.layers) {
      if (!layer.attention) continue;
      for (const auto& [offset, share] : layer.attention->by_offset) {
        if (std::abs(offset) <= kNearOffsets) most = std::max(most, share);
      }
    }
  });
  return most;
}

std::string offset_cells(const ObservedLayer& layer, double most) {
  std::string cells;
  for (int64_t offset = -kNearOffsets; offset <= kNearOffsets; ++offset) {
    const auto found = layer.attention->by_offset.find(offset);
    cells += found == layer.attention->by_offset.end() ? "  · " : offset_cell(found->second, most);
  }
  return cells;
}

void offset_table(const ObservedPair& pair, SideBySide& page) {
  page.heading("Attention goes: percent of it by offset j − i, over all heads");
  begin_columns(pair, "layer", " −3  −2  −1   0  +1  +2  +3", page);
  const double most = greatest_share(pair);
  for (size_t l = 1; l < pair.before.layers.size(); ++l) {
    const auto cells = [&](const Observed& text) {
      return text.layers[l].attention ? offset_cells(text.layers[l], most) : std::string(kNoAnswer);
    };
    page.row(fmt::format("{}", l), cells(pair.before), pair.after ? cells(*pair.after) : "");
  }
}

/// The heads of a run that look at one neighbour.
void positional_heads(const std::string& label, const Observed& text, SideBySide& page) {
  int64_t found = 0, heads = 0;
  for (size_t l = 1; l < text.layers.size(); ++l) {
    if (!text.layers[l].attention) continue;
    int64_t number = 0;
    for (const phasor::HeadProfile& head : text.layers[l].attention->heads) {
      ++heads;
      ++number;
      if (!head.positional_offset) continue;
      if (++found == 1 && !label.empty()) page.line("  " + label);
      page.line(fmt::format(
          "  {:<6} looks at the {} token: {:.0f} % of its rows", fmt::format("{}.{}", l, number),
          *head.positional_offset < 0 ? "previous" : "next", 100 * head.positional_share));
    }
  }
  if (heads > 0 && found == 0) {
    page.line(fmt::format("  {}no head looks at one neighbour from 90 % of its rows",
                          label.empty() ? "" : label + ": "));
  }
}

/// The corner of a square matrix; means of blocks would blur its diagonals.
Matrix leading(const Matrix& matrix, int64_t most) {
  Matrix corner{.values = {}, .rows = std::min(matrix.rows, most), .columns = 0};
  corner.columns = corner.rows;
  for (int64_t row = 0; row < corner.rows; ++row) {
    const auto begin = matrix.values.begin() + row * matrix.columns;
    corner.values.insert(corner.values.end(), begin, begin + corner.columns);
  }
  return corner;
}

void draw_pattern(const std::string& run, const Observed& text, HeadNumber head,
                  const Output& output, SideBySide& page) {
  const Matrix matrix = leading(pattern_of(text, head), kMostPatternTokens);
  HeatMapOptions options{.width = std::min(output.width(), 80) - 2, .colours = output.colours()};
  options.range = Range{0, 1};
  for (const std::string& piece : text.input.pieces) {
    if (std::ssize(options.row_labels) == matrix.rows) break;
    options.row_labels.push_back(cut_right(printable(piece), 12));
  }
  page.heading(fmt::format("Attention of head {}.{}{}: how much a row's token reads of a column's",
                           head.layer, head.head, run.empty() ? "" : ", " + run));
  for (const std::string& line : heat_map(matrix, options)) page.line("  " + line);
  page.line("  " + heat_map_key(matrix, options));
  if (matrix.rows < text.num_tokens()) {
    page.line(fmt::format("  the first {} tokens of {}", matrix.rows, text.num_tokens()));
  }
}

}  // namespace

std::optional<HeadNumber> most_positional_head(const Observed& text) {
  std::optional<HeadNumber> best;
  double most = -1;
  for (size_t l = 1; l < text.layers.size(); ++l) {
    if (!text.layers[l].attention) continue;
    const std::vector<phasor::HeadProfile>& heads = text.layers[l].attention->heads;
    for (size_t h = 0; h < heads.size(); ++h) {
      if (heads[h].positional_share <= most) continue;
      most = heads[h].positional_share;
      best = HeadNumber{static_cast<int64_t>(l), static_cast<int64_t>(h) + 1};
    }
  }
  return best;
}

HeadNumber chosen_head(const ObservedPair& pair, std::optional<HeadNumber> asked) {
  if (!asked) asked = most_positional_head(pair.before);
  return asked.value_or(HeadNumber{1, 1});
}

Matrix pattern_of(const Observed& text, HeadNumber head) {
  const int64_t tokens = text.num_tokens();
  const std::vector<float>& pattern = text.patterns.at(head.layer - 1);  // [H, T, T]
  const auto begin = pattern.begin() + (head.head - 1) * tokens * tokens;
  return {.values = {begin, begin + tokens * tokens}, .rows = tokens, .columns = tokens};
}

void attention_tables(const ObservedPair& pair, SideBySide& page) {
  layer_table(View::kAttention, pair, page);
  const auto tokens = static_cast<double>(pair.before.num_tokens());
  if (tokens > 0) {
    page.line(fmt::format("  {:<13}{:>7.2f}{:>8.2f}", "if uniform", (tokens - 1 / tokens) / 3,
                          tokens > 1 ? 1.0 : 0.0));
  }
  offset_table(pair, page);
  positional_heads(pair.after ? "before" : "", pair.before, page);
  if (pair.after) positional_heads("after", *pair.after, page);
}

void pattern_picture(const ObservedPair& pair, std::optional<HeadNumber> head, const Output& output,
                     SideBySide& page) {
  const HeadNumber chosen = chosen_head(pair, head);
  draw_pattern(pair.after ? "before" : "", pair.before, chosen, output, page);
  if (pair.after) draw_pattern("after", *pair.after, chosen, output, page);
}

void scores_table(const ObservedPair& pair, SideBySide& page) {
  constexpr int kBarWidth = 20;
  page.heading("The first layer's scores: shares of their variance, by query · key");
  page.line("  1: decides where attention goes; 0: has no say; below 0: against the others");
  begin_columns(pair, "", "", page);
  constexpr std::array<const char*, 6> kNames = {"token · token", "token · pos.",  "pos. · token",
                                                 "pos. · pos.",   "relative bias", "rest"};
  std::array<std::vector<double>, 2> shares;
  const auto read = [&](const Observed& text, size_t side) {
    if (!text.first_layer_scores) return;
    for_each_share(text.first_layer_scores->all,
                   [&](const char*, double share) { shares[side].push_back(share); });
  };
  read(pair.before, 0);
  if (pair.after) read(*pair.after, 1);
  if (shares[0].empty() && shares[1].empty()) return;
  for (size_t term = 0; term < kNames.size(); ++term) {
    const auto cell = [&](size_t side) -> std::string {
      if (shares[side].empty()) return "";
      return fmt::format("{:>7}  {}", small_number(shares[side][term]),
                         bar(shares[side][term], kBarWidth));
    };
    page.both(kNames[term], cell);
  }
}

}  // namespace infer
