// infer rank: texts by what a reranker says of a query and each of them.
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/commands/classify/classifier.h"
#include "phasor/errors.h"

namespace infer {
namespace {

constexpr const char* kRankFooter =
    R"(The model is a reranker (a cross-encoder), or one of sentence or token vectors, whose
similarity is the score: docs/command-line.md#ranking-and-classifying. Empty lines are
left out. Of many lines, find candidates first: infer embed -i FILE --nearest 100 QUERY.

Examples:
  infer rank -m ms-marco-MiniLM-L6-v2 "Who bit the dog?" "Tom bit a dog." "It rains."
  infer rank -m bge-reranker-base -i passages.txt --top 3 "Who bit the dog?"
  cat passages.txt | infer rank -m bge-reranker-base --json "Who bit the dog?")";

/// Throws ModelError for a head that has other labels than one.
void check_labels(const std::vector<std::string>& labels, const std::string& name) {
  if (labels.size() == 1) return;
  throw phasor::ModelError(
      fmt::format("rank needs a model with one label, and {} has {} ({}{}); infer classify shows "
                  "them; choose a reranker (a cross-encoder) or a model of sentence vectors",
                  name, labels.size(),
                  fmt::join(std::span(labels).first(std::min<size_t>(labels.size(), 5)), ", "),
                  labels.size() > 5 ? ", …" : ""));
}

/// Of a model without a head: whether texts are ranked by the vectors of their tokens, else by one
/// of each. Says so unless `quiet`.
bool ranks_by_tokens(const phasor::Model& model, const std::string& name, bool quiet) {
  const bool by_tokens = !model.has_sentence() && model.has_token_vectors();
  if (!by_tokens && !model.has_sentence() && model.has_sparse()) {
    throw phasor::ModelError(
        fmt::format("rank: {} makes sparse vectors, which infer embed --sparse prints; choose a "
                    "reranker (a cross-encoder), a model of sentence vectors or a ColBERT",
                    name),
        phasor::ErrorCode::kUnsupported);
  }
  if (quiet) return by_tokens;
  report_note(
      fmt::format("texts are ranked by the {}, for {} has no classification head",
                  by_tokens ? "MaxSim of token vectors"
                            : fmt::format("{} of vectors", to_string(model.sentence().similarity)),
                  name));
  return by_tokens;
}

/// Of a model without a head, whose query runs by itself: a Ranking says nothing of its length.
void refuse_long_query(const phasor::Encoder& encoder, const phasor::TextOptions& how,
                       const std::string& query) {
  try {
    encoder.rank(query, std::vector<std::string>(), how);
  } catch (const phasor::InvalidArgument& error) {
    throw phasor::InvalidArgument(fmt::format("the query: {}", error.what()), error.code());
  }
}

}  // namespace

int rank(CommandLine& line) {
  TextArguments arguments;
  std::optional<int64_t> top;
  std::optional<std::string> query;
  line.footer(kRankFooter);
  line.option("QUERY", "", "what is searched for", query);
  line.words("TEXT", "what is ranked; - stands for the lines of standard input", arguments.words);
  line.option("--top", "N", "show the N best (default: 10 of lines, otherwise all)", top,
              Range{1, kMostShown});
  add_options(line, arguments, "the folder of a reranker, or of a model for sentence vectors",
              phasor::kUseRank);
  if (const auto done = line.parse()) return *done;
  if (!query || is_blank(*query))
    throw UsageError(fmt::format("rank: the query is {}; give it before the texts",
                                 query ? "empty" : "missing"));
  LineReader lines = lines_of("rank", "a reranker", phasor::kUseRank, arguments);
  const bool reads_lines = arguments.words.empty() || arguments.words.front() == "-";
  const int64_t shown = top.value_or(reads_lines ? 10 : kMostShown);
  const CommonOptions& common = arguments.common;
  const auto model = phasor::Model::load(common.model, load_options(common));
  const auto& head = model->weights().classifier;
  if (head) check_labels(head->labels, common.model);
  const bool by_tokens = !head && ranks_by_tokens(*model, common.model, common.quiet);
  tell(arguments, *model, head.has_value());
  const phasor::Encoder encoder(model, encoder_options(common));
  if (!head && arguments.how.overflow == phasor::Overflow::kError)
    refuse_long_query(encoder, arguments.how, *query);
  Ranking ranking;
  const auto run = [&](auto texts, const auto& how) { return encoder.rank(*query, texts, how); };
  const auto write = [&](std::span<const Line> window, const phasor::Ranking& result) {
    for (int64_t i = 0; i < result.size(); ++i) {
      if (!is_blank(window[i].text))
        add(result.logits[i], window[i], shown, ranking, result.scores[i]);
    }
    return true;
  };
  return run_lines(arguments, lines, true, 0, run, write, [&] {
    if (ranking.empty()) lines.refuse_empty();  // blank lines are no candidates
    Output output;
    print(output, *query, ranking, 4, common.json ? "ranking" : nullptr,
          [&](const RankedLine& one, JsonWriter& json) {
            json.member("score", static_cast<float>(one.score));
            if (head) json.member("logit", static_cast<float>(one.key));
          });
    return head ? "1 label" : by_tokens ? "a vector of each token" : "a vector each";
  });
}

}  // namespace infer
