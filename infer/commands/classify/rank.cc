// infer rank: texts by what a reranker says of a query and each of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/checks.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/commands/classify/classifier.h"
#include "infer/commands/embed/nearest.h"
#include "infer/commands/embed/saved_rows.h"
#include "infer/render/json_text.h"
#include "phasor/errors.h"
#include "phasor/safetensors.h"

namespace infer {
namespace {

constexpr const char* kRankFooter =
    R"(The model is a reranker (a cross-encoder): it reads QUERY and a text together, and its one
label says how well they go together. Lines are ranked by its logit; the score is what
config.json makes of it, a sigmoid unless it names Identity. Of a model without a head the
score is the similarity of the vectors, as in infer embed --nearest, or, where it has a vector of
each token (ColBERT), their MaxSim. A text that is too long is
cut, and empty lines are left out. --in ranks what infer embed --tokens -o has saved.
Of many lines, find candidates first: infer embed -i FILE --nearest 100 QUERY.

Examples:
  infer rank -m ms-marco-MiniLM-L6-v2 "Who bit the dog?" "Tom bit a dog." "It rains."
  infer rank -m bge-reranker-base -i passages.txt --top 3 "Who bit the dog?"
  infer rank -m answerai-colbert-small-v1 --in passages.safetensors "Who bit the dog?"
  cat passages.txt | infer rank -m bge-reranker-base --json "Who bit the dog?")";

struct RankArguments : ClassifyArguments {
  std::string in;     // of saved token vectors
  std::string texts;  // of which they were made
};

/// `ranking` is by the logits, or, of a model without a head, by the scores.
void print(const std::string& query, const Ranking& ranking, bool has_logits, bool json,
           bool has_texts = true) {
  Output output;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string text = output.heading(printable(query)) + "\n";
  for (const auto& [logit, number, line, score] : ranking) {
    list.push_back({{"line", number}, {"score", in_short(static_cast<float>(score))}});
    if (has_logits) list.back()["logit"] = in_short(static_cast<float>(logit));
    if (has_texts) list.back()["text"] = line;
    const std::string label = fmt::format("  {:8.4f}  line {:<7} ", score, number);
    text += has_texts ? output.labelled(label, line) : trimmed(label);
  }
  json ? output.write(one_line({{"query", query}, {"ranking", list}}) + "\n") : output.show(text);
}

/// Keeps the best `most` of a window's lines that are not blank. score_of(i) has key and score.
template <typename ScoreOf>
void add_window(std::span<const Line> window, int64_t most, Ranking& ranking,
                const ScoreOf& score_of) {
  for (int64_t i = 0; i < std::ssize(window); ++i) {
    if (is_blank(window[i].text)) continue;
    const auto [key, score] = score_of(i);
    add({key, window[i].number, window[i].text, score}, most, ranking);
  }
}

void tell_how(const phasor::Model& model, const ClassifyArguments& arguments, bool by_tokens) {
  report_note(
      fmt::format("texts are ranked by the {}, for {} has no classification head",
                  by_tokens ? "MaxSim of token vectors"
                            : fmt::format("{} of vectors", to_string(model.sentence().similarity)),
                  arguments.common.model));
  note_slow(precision_of(arguments.common));
  for (const std::string& note : model.notes()) report_note(note);
}

/// Of a model without a head, by the similarity of vectors.
int rank_by_vectors(std::shared_ptr<const phasor::Model> model, const ClassifyArguments& arguments,
                    const std::string& query, LineReader& lines, int64_t shown) {
  const bool quiet = arguments.common.quiet;
  const bool by_tokens = !model->has_sentence() && model->has_token_vectors();
  if (!quiet) tell_how(*model, arguments, by_tokens);
  phasor::Encoder encoder(std::move(model), encoder_options(arguments.common));
  LineStream stream(lines, {.quiet = quiet});
  Ranking ranking;
  const auto run = [&](auto texts, const auto& progress, const auto& stop) {
    return encoder.rank(
        query, texts,
        {.progress = progress, .stop = stop, .parse_special = arguments.common.special});
  };
  const auto sink = [&](std::span<const Line> window, const phasor::Ranking& result) {
    add_window(window, shown, ranking, [&](int64_t i) {
      return std::pair<double, double>(result.scores[i], result.scores[i]);
    });
    return true;
  };
  if (!stream.run<phasor::Ranking>(run, sink)) return report_error("interrupted", kBadInput);
  print(query, ranking, false, arguments.common.json);
  if (!quiet) report_note(stream.summary(by_tokens ? "a vector of each token" : "a vector each"));
  return 0;
}

[[noreturn]] void refuse_file(const std::string& file, const std::string& why) {
  throw phasor::InvalidArgument(fmt::format("--in: {}: {}", file, why));
}

/// The tensors of a file of documents' token vectors.
const phasor::SafetensorsFile& tensors_of(const SavedRows& saved, const std::string& file) {
  const phasor::SafetensorsFile* const whole = saved.safetensors();
  const bool has_tokens = whole != nullptr && whole->metadata().contains("format") &&
                          whole->metadata().at("format").ends_with("token vectors");
  if (!has_tokens || !whole->contains("offsets"))
    refuse_file(file,
                "it has no token vectors: infer embed --tokens -o FILE.safetensors writes "
                "them; infer embed --nearest --in searches vectors of lines");
  if (whole->metadata().contains("query") && whole->metadata().at("query") == "true")
    refuse_file(file, "these are vectors of queries; embed documents, without --query");
  return *whole;
}

std::vector<int32_t> int32s_of(const phasor::SafetensorsFile& tensors, const std::string& file,
                               const std::string& name) {
  const auto& entry = tensors.entries().at(name);
  if (entry.dtype != "I32" || entry.shape.size() != 1)
    refuse_file(file, fmt::format("'{}' must be a list of int32", name));
  std::vector<int32_t> numbers(entry.shape[0]);
  if (!numbers.empty()) std::memcpy(numbers.data(), entry.data, numbers.size() * sizeof(int32_t));
  return numbers;
}

/// Where the vectors of each line begin, and the end of the last: [lines + 1].
void check_offsets(std::span<const int32_t> offsets, const SavedRows& saved,
                   const std::string& file) {
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != saved.rows() ||
      !std::ranges::is_sorted(offsets))
    refuse_file(file, "'offsets' must begin with 0, rise, and end with the number of vectors");
  constexpr int64_t kMost = int64_t{1} << 20;
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] - offsets[i - 1] > kMost)
      refuse_file(file, fmt::format("line {} has {} vectors; at most {} are compared", i,
                                    offsets[i] - offsets[i - 1], kMost));
  }
}

/// The ids of a line's vectors where the line is blank. Where the file does not say, none.
std::vector<int32_t> ids_of_blank(phasor::Encoder& encoder, const RankArguments& arguments,
                                  const std::optional<VectorRecord>& record) try {
  const auto prefix = record ? record->made_with.find("prefix") : MadeWith::const_iterator();
  if (!record || prefix == record->made_with.end() || prefix->second.size() < 2) return {};
  const std::string unquoted = prefix->second.substr(1, prefix->second.size() - 2);
  return encoder.embed_tokens("", {.prompt = unquoted, .parse_special = arguments.common.special})
      .token_ids;
} catch (const phasor::InvalidArgument&) {  // has no tokens
  return {};
}

/// By the token vectors of a file, of which a block at a time is in memory.
int rank_saved(std::shared_ptr<const phasor::Model> model, const RankArguments& arguments,
               const std::string& query, int64_t most) {
  constexpr int64_t kBlock = 16384;  // vectors, but one line's at least
  const bool quiet = arguments.common.quiet;
  const int64_t width = model->token_vectors().width();
  const SavedRows saved("--in", arguments.in, "vectors", width);
  const phasor::SafetensorsFile& tensors = tensors_of(saved, arguments.in);
  const std::vector<int32_t> offsets = int32s_of(tensors, arguments.in, "offsets");
  check_offsets(offsets, saved, arguments.in);
  if (!quiet) tell_how(*model, arguments, true);
  phasor::Encoder encoder(std::move(model), encoder_options(arguments.common));
  VectorOptions given;
  given.common = arguments.common;
  given.overflow = "truncate";
  const std::optional<VectorRecord> record = checked_record(
      "--in", arguments.in, saved.width(),
      {made_with(encoder, given, ""), width, encoder.model().text().prompt_for(false), quiet});
  const phasor::TokenVectors asked =
      encoder.embed_tokens(query, {.is_query = true, .parse_special = arguments.common.special});
  const std::vector<int32_t> blank = ids_of_blank(encoder, arguments, record);
  std::vector<int32_t> ids;  // by which blank lines are known
  if (!blank.empty() && tensors.contains("token_ids"))
    ids = int32s_of(tensors, arguments.in, "token_ids");
  std::vector<Query> queries = {{.text = query, .vector = {}}};
  const auto lines = std::ssize(offsets) - 1;
  int64_t left_out = 0;
  for (int64_t first = 0, end = 0; first < lines; first = end) {
    phasor::TokenVectors block;
    block.width = width;
    while (end < lines && (end == first || offsets[end + 1] - offsets[first] <= kBlock))
      block.offsets.push_back(offsets[++end] - offsets[first]);
    block.values.resize(block.offsets.back() * width);
    saved.copy(offsets[first], block.values);
    const std::vector<float> scores = encoder.similarities(asked[0], block);
    for (int64_t i = first; i < end; ++i) {
      const auto begin = offsets[i], size = offsets[i + 1] - begin;
      const bool is_blank =
          size == 0 || (std::ssize(ids) >= offsets[i + 1] &&
                        std::ranges::equal(std::span(ids).subspan(begin, size), blank));
      if (is_blank) continue;
      if (phasor::internal::all_finite(block[i - first]))
        add({scores[i - first], i + 1, "", scores[i - first]}, most, queries[0].nearest);
      else
        ++left_out;
    }
  }
  note_left_out(arguments.in, quiet, left_out);
  if (!arguments.texts.empty())
    add_texts(arguments.texts, arguments.in, lines, record ? record->input : "", queries);
  print(query, queries[0].nearest, false, arguments.common.json, !arguments.texts.empty());
  return 0;
}

}  // namespace

int rank(int argc, char** argv) {
  RankArguments arguments;
  std::optional<std::string> query;
  CommandLine line("infer rank", "Sorts texts, or the lines of a file, by relevance to QUERY.",
                   kRankFooter);
  line.option("QUERY", "", "what is searched for", query);
  line.words("TEXT", "what is ranked; - stands for the lines of standard input", arguments.words);
  line.option("--top", "N", "show the N best (default: 10 of lines, otherwise all)", arguments.top,
              Range{1, kMostShown});
  line.option("--in", "VECTORS",
              "rank the lines of this file instead, whose token vectors infer embed --tokens has "
              "written",
              arguments.in);
  line.option("--texts", "FILE", "the lines of which VECTORS was made, to print them",
              arguments.texts);
  add_options(line, arguments, "the folder of a reranker, or of a model for sentence vectors");
  if (const auto done = line.parse(argc, argv)) return *done;
  if (!query || is_blank(*query)) {
    throw UsageError(fmt::format("rank: the query is {}; give it before the texts",
                                 query ? "empty" : "missing"));
  }
  if (arguments.in.empty() && !arguments.texts.empty())
    throw UsageError("--texts names the file of which the vectors of --in were made; give --in");
  if (!arguments.in.empty()) {
    if (!arguments.words.empty() || arguments.input)
      throw UsageError("--in: its lines are ranked; leave out texts and -i");
    check_model("rank", "a ColBERT", arguments);
    return rank_saved(phasor::Model::load(arguments.common.model, load_options(arguments.common)),
                      arguments, *query, arguments.top.value_or(10));
  }
  LineReader lines = lines_of("rank", "a reranker", arguments);
  const bool reads_lines = arguments.words.empty() || arguments.words.front() == "-";
  const int64_t shown = arguments.top.value_or(reads_lines ? 10 : kMostShown);
  // Loading maps the files, so that doing it twice costs little.
  auto model = phasor::Model::load(arguments.common.model, load_options(arguments.common));
  if (!model->weights().classifier)
    return rank_by_vectors(std::move(model), arguments, *query, lines, shown);
  Classifier classifier(arguments);
  const std::vector<std::string>& labels = classifier.head.labels;
  if (labels.size() != 1) {
    throw phasor::ModelError(fmt::format(
        "rank needs a model with one label, and {} has {} ({}{}); infer classify shows them",
        arguments.common.model, labels.size(),
        fmt::join(std::span(labels).first(std::min<size_t>(labels.size(), 5)), ", "),
        labels.size() > 5 ? ", …" : ""));
  }
  Ranking ranking;
  const auto run = [&](auto texts, const phasor::ClassifyOptions& options) {
    return classifier.encoder.classify(*query, texts, options);
  };
  const auto add = [&](std::span<const Line> window, const phasor::Classification& result) {
    add_window(window, shown, ranking, [&](int64_t i) {
      return std::pair<double, double>(result.logits(i)[0], result.probabilities(i)[0]);
    });
    return true;
  };
  const auto finish = [&] { print(*query, ranking, true, arguments.common.json); };
  return classifier.run(lines, {.quiet = arguments.common.quiet}, run, add, finish);
}

}  // namespace infer
