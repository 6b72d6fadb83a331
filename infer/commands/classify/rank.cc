// infer rank: texts by what a reranker says of a query and each of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "infer/commands.h"
#include "infer/commands/classify/classifier.h"
#include "infer/render/observed_json.h"
#include "infer/render/terminal.h"
#include "phasor/errors.h"

namespace infer {
namespace {

constexpr const char* kRankFooter =
    R"(The model is a reranker (a cross-encoder): it reads QUERY and a text together, and its one
label says how well they go together. Lines are ranked by its logit; the score is what
config.json makes of it, a sigmoid unless it names Identity. A text that is too long is cut,
and empty lines are left out.
Of many lines, find candidates first: infer embed -i FILE --nearest 100 QUERY.

Examples:
  infer rank -m ms-marco-MiniLM-L6-v2 "Who bit the dog?" "Tom bit a dog." "It rains."
  infer rank -m bge-reranker-base -i passages.txt --top 3 "Who bit the dog?"
  cat passages.txt | infer rank -m bge-reranker-base --json "Who bit the dog?")";

/// `ranking` is by the logits.
void print(const std::string& query, const Ranking& ranking, bool json) {
  Output output;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string text = output.heading(printable(query)) + "\n";
  for (const auto& [logit, number, line, score] : ranking) {
    list.push_back({{"line", number}, {"score", score}, {"logit", logit}, {"text", line}});
    text += output.labelled(fmt::format("  {:8.4f}  line {:<7} ", score, number), line);
  }
  json ? output.write(one_line({{"query", query}, {"ranking", list}}) + "\n") : output.show(text);
}

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\v\f\n") == std::string::npos;
}

}  // namespace

int rank(int argc, char** argv) {
  ClassifyArguments arguments;
  std::optional<std::string> query;
  CommandLine line("infer rank", "Sorts texts, or the lines of a file, by relevance to QUERY.",
                   kRankFooter);
  line.option("QUERY", "", "what is searched for", query);
  line.words("TEXT", "what is ranked; - stands for the lines of standard input", arguments.words);
  line.option("--top", "N", "show the N best (default: 10 of lines, otherwise all)", arguments.top,
              Range{1, kMostShown});
  add_options(line, arguments);
  if (const auto done = line.parse(argc, argv)) return *done;
  if (!query || is_blank(*query)) {
    throw UsageError(fmt::format("rank: the query is {}; give it before the texts",
                                 query ? "empty" : "missing"));
  }
  LineReader lines = lines_of("rank", arguments);
  Classifier classifier(
      arguments, "a sentence-embedding model searches with infer embed -i FILE --nearest N QUERY");
  const std::vector<std::string>& labels = classifier.head.labels;
  if (labels.size() != 1) {
    throw phasor::ModelError(fmt::format(
        "rank needs a model with one label, and {} has {} ({}{}); infer classify shows them",
        arguments.common.model, labels.size(),
        fmt::join(std::span(labels).first(std::min<size_t>(labels.size(), 5)), ", "),
        labels.size() > 5 ? ", …" : ""));
  }
  const bool reads_lines = arguments.words.empty() || arguments.words.front() == "-";
  const int64_t shown = arguments.top.value_or(reads_lines ? 10 : kMostShown);
  Ranking ranking;
  const auto run = [&](auto texts, const phasor::ClassifyOptions& options) {
    return classifier.encoder.classify(*query, texts, options);
  };
  const auto add = [&](std::span<const Line> window, const phasor::Classification& result,
                       const LinesDone& state) {
    const int64_t first = state.lines - std::ssize(window) + 1;
    for (int64_t i = 0; i < result.size(); ++i) {
      if (is_blank(window[i].text)) continue;
      infer::add({result.logits(i)[0], first + i, window[i].text, result.probabilities(i)[0]},
                 shown, ranking);
    }
    return true;
  };
  const auto finish = [&] { print(*query, ranking, arguments.common.json); };
  return classifier.run(lines, {.quiet = arguments.common.quiet}, run, add, finish);
}

}  // namespace infer
