// What infer observe prints of a text: a table or picture for each view.
#include "infer/views/observe_view.h"

#include <fmt/format.h>

#include "infer/render/report.h"

namespace infer {
namespace {

/// The measure whose absence explains that of a view.
std::optional<Measure> measure_of(View view) {
  switch (view) {
    case View::kSplit:
      return Measure::kSplit;
    case View::kDirect:
      return Measure::kDirect;
    case View::kOrder:
      return Measure::kOrder;
    case View::kAttention:
      return Measure::kAttention;
    case View::kScores:
      return Measure::kScores;
    case View::kCorpus:
      return Measure::kCorpusSplit;
    case View::kProbe:
      return Measure::kProbe;
    default:
      return std::nullopt;
  }
}

std::string why_missing(const Observed& text, View view) {
  const auto measure = measure_of(view);
  const auto found = measure ? text.missing.find(*measure) : text.missing.end();
  return found == text.missing.end() ? "" : found->second;
}

void pooled_line(const ObservedPair& pair, SideBySide& page) {
  const auto cell = [](const Observed& text) {
    return text.pooled_effect ? fmt::format("{:>7}", small_number(*text.pooled_effect)) : "";
  };
  page.row("pooled", cell(pair.before), pair.after ? cell(*pair.after) : "");
}

/// The tutorials' sentence as a number.
void arrival_lines(const ObservedPair& pair, SideBySide& page) {
  const auto& before = pair.before.layers.back().direct_position;
  if (!pair.after || !before || !pair.after->layers.back().direct_position) return;
  const double after = pair.after->layers.back().direct_position->norm;
  page.line("  What reaches the last state of the position vector, not read by any block:");
  page.line(fmt::format("  {} of the state's length before, {} after.", small_number(before->norm),
                        after > 0 ? small_number(after) : "nothing"));
}

/// How the numbers of many texts came about.
void corpus_lines(View view, const ObservedPair& pair, SideBySide& page) {
  const CorpusSize& size = *pair.before.corpus;
  if (view == View::kCorpus && size.split_texts > 0) {
    page.line(fmt::format("  the first {} tokens of {} texts that have so many", size.split_places,
                          size.split_texts));
  }
  const auto& probe = pair.before.layers.back().probe;
  if (view != View::kProbe || !probe) return;
  page.line(
      fmt::format("  trained on {} tokens of {} texts, scored on {} of {}; predicting the mean:",
                  probe->num_train, size.train_texts, probe->num_held_out, size.held_out_texts));
  page.line(
      fmt::format("  R² {:.3f}, error {:.2f}", probe->mean.r2, probe->mean.mean_absolute_error));
}

void print_view(View view, const ObservedPair& pair, const Shown& shown, const Output& output,
                SideBySide& page) {
  switch (view) {
    case View::kMoved:
      return moved_table(pair, page);
    case View::kAttention:
      return attention_tables(pair, page);
    case View::kPattern:
      return pattern_picture(pair, shown.head, output, page);
    case View::kScores:
      return scores_table(pair, page);
    default:
      layer_table(view, pair, page);
  }
  if (view == View::kDirect) arrival_lines(pair, page);
  if (pair.before.corpus) corpus_lines(view, pair, page);
  if (view == View::kEffect) pooled_line(pair, page);
}

void print_missing(View view, const ObservedPair& pair, SideBySide& page) {
  for_each_run(pair, [&](std::string_view run, const Observed& text) {
    const std::string why = why_missing(text, view);
    if (why.empty()) return;
    page.line(fmt::format("  {} {}{}", kNoAnswer, pair.after ? std::string(run) + ": " : "", why));
  });
}

}  // namespace

bool applies(View view, const ObservedPair& pair) {
  switch (view) {
    case View::kMoved:
      return pair.after.has_value();
    case View::kPattern:
      return !pair.before.patterns.empty();
    case View::kCorpus:
    case View::kProbe:
      return pair.before.corpus.has_value();
    default:
      return true;
  }
}

std::string to_text(const ObservedPair& pair, const Shown& shown, const Output& output) {
  const Input& input = pair.before.input;
  std::string out;
  if (const auto& corpus = pair.before.corpus) {
    out += output.heading(fmt::format("{}: means over {} texts, {} tokens", printable(corpus->file),
                                      corpus->texts, corpus->tokens)) +
           "\n";
  } else {
    if (input.text) {
      const std::string title = printable(*input.text);
      out += output.heading(title.empty() ? "(empty text)" : title) + "\n";
    }
    out += token_rows(pair.before, std::min(output.width(), 80));
  }
  SideBySide page(output);
  for (const View view : shown.views) {
    if (!applies(view, pair)) continue;
    print_view(view, pair, shown, output, page);
    print_missing(view, pair, page);
  }
  return out + (page.text().empty() ? "" : "\n") + page.text();
}

}  // namespace infer
