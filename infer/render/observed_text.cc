#include "infer/render/observed_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "infer/render/heat_map.h"

namespace infer {
namespace {

constexpr int64_t kMostPatternTokens = 32;

int text_width(const Output& output) { return std::min(output.width(), kTextWidth); }

/// What `get` says of each run, behind `mark` and with the run's name; once where they are alike.
template <typename Get>
std::string lines_of(std::span<const Observed> runs, std::string_view mark, Get get) {
  std::vector<std::string> texts;
  for (const Observed& run : runs) texts.push_back(get(run));
  const bool alike = std::ranges::count(texts, texts[0]) == std::ssize(texts);
  std::string out;
  for (size_t side = 0; side < (alike ? 1 : texts.size()); ++side) {
    if (texts[side].empty()) continue;
    out += paragraph(fmt::format("{}{}{}{}", mark, alike ? "" : runs[side].label, alike ? "" : ": ",
                                 texts[side]));
  }
  return out;
}

/// The corner of a pattern: means of blocks would blur its diagonals.
std::string pattern_text(const Observed& text, HeadNumber head, const Output& output) {
  const int64_t tokens = text.num_tokens, shown = std::min(tokens, kMostPatternTokens);
  const float* const pattern =  // [T, T]
      text.patterns.at(head.layer - 1).data() + (head.head - 1) * tokens * tokens;
  Matrix corner{.values = {}, .rows = shown, .columns = shown};
  std::vector<std::string> labels;
  for (int64_t i = 0; i < shown; ++i) {
    corner.values.insert(corner.values.end(), pattern + i * tokens, pattern + i * tokens + shown);
    labels.push_back(text.tokens.pieces.empty() ? fmt::format("{}", text.tokens.ids[i])
                                                : cut_right(printable(text.tokens.pieces[i]), 12));
  }
  std::string out = fmt::format("  head {}{}{}\n", name_of(head), text.label.empty() ? "" : ", ",
                                printable(text.label));
  out += heat_map(corner, labels, text_width(output), [](auto) { return Range{0, 1}; });
  if (shown < tokens) out += fmt::format("  the first {} tokens of {}\n", shown, tokens);
  return out;
}

std::string patterns_text(std::span<const Observed> runs, const Shown& shown,
                          const Output& output) {
  std::vector<HeadNumber> heads = shown.heads;
  if (heads.empty())
    heads.push_back(phasor::internal::most_positional_head(runs[0]).value_or(HeadNumber{1, 1}));
  std::string out;
  for (const HeadNumber head : heads) {
    for (const Observed& run : runs) {
      if (!run.patterns.empty()) out += pattern_text(run, head, output);
    }
  }
  return out;
}

/// Why runs do not have the view, as paragraphs; empty where none says why.
std::string missing_lines(const View& view, std::span<const Observed> runs) {
  return lines_of(runs, fmt::format("{} ", kNoNumber), [&](const Observed& run) {
    const auto why = run.missing.find(view.name);
    return why == run.missing.end() ? std::string() : why->second;
  });
}

std::string view_text(const View& view, std::span<const Observed> runs, const Shown& shown,
                      const Output& output) {
  const bool is_pattern = view.columns.empty();
  const std::string body = is_pattern ? patterns_text(runs, shown, output)
                                      : table_text(view, runs, shown, text_width(output));
  const std::string missing = missing_lines(view, runs);
  if (body.empty() && missing.empty()) return "";
  const std::string notes = lines_of(runs, "", [&](const Observed& run) {
    const Table* const table = run.table(view.name);
    return table == nullptr ? std::string() : table->note;
  });
  return "\n" + output.heading(view.title) + "\n" + paragraph(view.hint, text_width(output)) +
         body + notes + missing;
}

/// Whether a number of a trained run has an interval over texts.
bool has_interval(const View& view, std::span<const Observed> runs) {
  const auto known = [](const Row& row) {
    return std::ranges::any_of(row.intervals,
                               [](const phasor::Interval& ends) { return !std::isnan(ends.low); });
  };
  return std::ranges::any_of(runs, [&](const Observed& run) {
    const Table* const table = run.table(view.name);
    return run.untrained == 0 && table != nullptr && std::ranges::any_of(table->rows, known);
  });
}

/// What ± in the `tables`, and "untrained", mean.
std::string errors_in_words(std::span<const Observed> runs, const Shown& shown,
                            std::string_view tables) {
  const bool errors = tables.find("±") != tables.npos;  // not where there is no room for any
  const auto over_texts = [&](const View* view) { return has_interval(*view, runs); };
  std::string said;
  if (errors && std::ranges::any_of(shown.views, over_texts))
    said = "± is half of the 95 % interval over texts (bootstrap). ";
  if (runs.back().untrained == 1)
    said += "Untrained: the same architecture with random weights.";
  else if (runs.back().untrained > 1)
    said += fmt::format(
        "Untrained: means over {} models of the same architecture with random weights{}.",
        runs.back().untrained, errors ? "; ± is half of their range" : "");
  return said.empty() ? "" : "\n" + paragraph(said);
}

/// The text, or how many there are, as a heading; empty for ids.
std::string title_of(const Observed& observed, const Output& output) {
  if (observed.means) {
    const std::string what = observed.file.empty() ? "Means" : printable(observed.file) + ": means";
    return output.heading(fmt::format("{} over {} text{}, {} tokens", what, observed.num_texts,
                                      observed.num_texts == 1 ? "" : "s", observed.num_tokens)) +
           "\n";
  }
  if (!observed.text) return "";
  const std::string text = printable(*observed.text);
  return output.heading(text.empty() ? "(empty text)" : text) + "\n";
}

/// The ids, positions and pieces of a text's tokens under each other.
std::string token_rows(const Observed& text, int width) {
  TokenRow position{"position", {}}, token{"token", {}}, id{"id", {}};
  for (const float p : text.position_ids) position.cells.push_back(fmt::format("{:.4g}", p));
  for (const std::string& piece : text.tokens.pieces) token.cells.push_back(printable(piece));
  for (const int32_t i : text.tokens.ids) id.cells.push_back(fmt::format("{}", i));
  if (token.cells.empty()) return token_table({position, id}, width);
  return token_table({position, token, id}, width);
}

/// What the views tell, as paragraphs; of two runs with the options that show more of it.
std::string conclusion_lines(std::span<const Observed> runs, std::span<const View* const> views) {
  std::string out;
  for (const auto& [sentence, of_views, advice] : conclusions(runs, views)) {
    std::string line = sentence;
    if (runs.size() > 1 && !of_views.empty()) {
      std::vector<std::string_view> names;
      for (const View* view : of_views) names.emplace_back(view->name);
      line.replace(line.size() - 1, 1, fmt::format(" (--only {}).", fmt::join(names, ",")));
    }
    if (!line.empty() && !advice.empty()) line += ' ';
    out += paragraph(printable(line + advice));
  }
  return out;
}

}  // namespace

std::string to_text(std::span<const Observed> runs, const Shown& shown, const Output& output) {
  const Observed& first = runs[0];
  std::string out = title_of(first, output);
  if (!first.means) out += token_rows(first, text_width(output));
  const std::string said = conclusion_lines(runs, shown.views);
  if (!said.empty()) out += "\n" + said;
  std::string tables;
  for (const View* view : shown.views) tables += view_text(*view, runs, shown, output);
  return out + errors_in_words(runs, shown, tables) + tables;
}

std::string to_short_text(std::span<const Observed> runs, const Shown&, const Output& output) {
  const Observed& text = runs[0];
  std::string out = title_of(text, output) + token_rows(text, output.width()) + "\n";
  const View* const effect = &view("effect");
  for (const auto& said : conclusions(runs, {&effect, 1}))
    if (!said.sentence.empty() && !said.views.empty()) out += paragraph(said.sentence) + "\n";
  out += fmt::format("  {:>5}  {:>8}  {:<28}  {}\n", "layer", "norm", "effect of positions",
                     "reach of attention");
  const Table& norm = text.tables.at("norm");
  for (const Row& row : norm.rows) {
    const auto number = [&](const char* view) -> std::optional<double> {
      const Table* const table = text.table(view);
      const Row* const found = table == nullptr ? nullptr : table->find(row);
      return found == nullptr ? std::nullopt : std::optional(found->cells[0]);
    };
    const double effect = number("effect").value_or(0);
    const std::optional<double> reach = number("attention");
    out += trimmed(fmt::format(
        "  {:>5}  {:>8.2f}  {}  {}", name_of(row), row.cells[0],
        pad_right(fmt::format("{:>5}  {}", small_number(effect), bar(effect, kBarWidth)), 28),
        reach ? fmt::format("{:.2f} tokens", *reach) : ""));
  }
  int64_t mask = -1;
  for (const lens::Filler& filler : text.fillers) {
    if (std::exchange(mask, filler.token) != filler.token) {
      out += fmt::format("\n  most probable tokens for the mask at position {:.4g}\n",
                         text.position_ids[mask]);
    }
    out += trimmed(fmt::format("    {} {:.3f} {}", pad_right(printable(filler.piece), 16),
                               filler.probability, bar(filler.probability, kBarWidth)));
  }
  return out;
}

std::string to_overview(std::span<const Observed> runs, const Shown& shown, const Output& output) {
  constexpr int kNumber = 14, kLayer = 7;
  const int title = std::clamp(output.width() - 2 - 2 * kNumber - kLayer, 20, 40);
  const auto cell = [](const std::string& text) {
    return pad_left(cut_left(text, kNumber - 2), kNumber);
  };
  std::string out = title_of(runs[0], output) + "\n";
  out += conclusion_lines(runs, shown.views);
  out += "\n" +
         output.heading(
             "Means over layers, and the layer above the embedding where both differ most") +
         "\n";
  out += trimmed(pad_right("", title + 2) + cell(printable(runs[0].label)) +
                 cell(printable(runs[1].label)) + "  layer");
  for (const auto& each : differences(runs, shown.views)) {
    const Column& column = each.view->columns[each.view->lead];
    const std::string layer =
        each.place.layer < 0 ? "" : name_of(Row{.layer = each.place.layer, .cells = {}});
    const std::string name = wrapped(lead_name(*each.view), 4, title);
    const std::string end = name.substr(name.rfind('\n') + 1);
    out += trimmed("  " + name + std::string(title - display_width(end), ' ') +
                   cell(number_text(each.mean[0], column)) +
                   cell(number_text(each.mean[1], column)) + pad_left(layer, kLayer));
  }
  for (const View* view : shown.views) {
    const std::string missing = missing_lines(*view, runs);
    if (!missing.empty()) out += fmt::format("  {}\n  {}", view->title, missing);
  }
  return out + "\n  --only NAME or --only all prints the tables.\n";
}

}  // namespace infer
