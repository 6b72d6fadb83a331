// infer classify and infer rank: what a classification head says of texts, and of a query with
// each.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "infer/cli/options.h"
#include "infer/commands.h"
#include "infer/commands/embed/embed_stream.h"
#include "infer/render/observed_json.h"
#include "infer/render/terminal.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"

namespace infer {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostShown = 10'000'000;

/// What both commands take.
struct ClassifyArguments {
  CommonOptions common;
  std::vector<std::string> words;
  std::optional<std::string> input;
  std::optional<int64_t> top;
};

void add_options(CommandLine& line, ClassifyArguments& arguments) {
  add_model(line, arguments.common);
  line.option("-i,--input", "FILE", "the lines of a file instead of TEXT; - is standard input",
              arguments.input);
  add_language(line, arguments.common);
  add_threads(line, arguments.common);
  add_precision(line, arguments.common);
  add_json_and_quiet(line, arguments.common);
}

/// The texts or the lines.
LineReader lines_of(const char* command, const ClassifyArguments& arguments) {
  if (arguments.input && !arguments.words.empty()) {
    throw UsageError(fmt::format("{}: texts and -i exclude each other; give one of them", command));
  }
  const bool reads = arguments.words == std::vector<std::string>{"-"};
  if (!arguments.input && !reads) {
    if (arguments.words.empty()) {
      throw UsageError(
          fmt::format("{}: no text was given; -i FILE reads lines, -i - standard input", command));
    }
    return LineReader(read_texts(arguments.words));
  }
  const std::string file = arguments.input.value_or("-");
  if (file == "-" && isatty(STDIN_FILENO) != 0 && !arguments.common.quiet) {
    report_note("reading lines from the terminal; Ctrl-D ends them");
  }
  return LineReader(file);
}

/// A model with a classification head.
struct Classifier {
  /// `without` says what to do if the model has no head.
  Classifier(const ClassifyArguments& arguments, const char* without)
      : model(phasor::Model::load(arguments.common.model, {.language = arguments.common.language})),
        head(head_of(*model, without)),
        encoder(model,
                {.threads = arguments.common.threads, .precision = arguments.common.precision}) {
    model->tokenizer();  // or the sentence why there is none
    if (arguments.common.quiet) return;
    note_slow(arguments.common.precision);
    for (const std::string& note : model->notes()) report_note(note);
  }

  static const phasor::ClassifierHead& head_of(const phasor::Model& model, const char* without) {
    if (model.weights().classifier) return *model.weights().classifier;
    std::string why = fmt::format("the {} model {} has no classification head",
                                  model.config().family, model.folder().string());
    for (const std::string& note : model.notes()) {
      if (note.starts_with("the classification head")) why = note;
    }
    throw phasor::ModelError(fmt::format("{}; {}", why, without), phasor::ErrorCode::kUnsupported);
  }

  /// Runs all lines through `run`; throws what the library throws.
  int classify(LineReader& lines, bool quiet, bool waits,
               const std::function<phasor::Classification(std::span<const std::string_view>,
                                                          const phasor::ClassifyOptions&)>& run,
               const LineStream::Sink<phasor::Classification>& sink,
               const std::function<void()>& finish) {
    LineStream stream(lines, {.quiet = quiet, .waits = waits});
    const auto run_texts = [&](auto texts, const phasor::Progress& progress, const auto& stop) {
      return run(texts, {.progress = progress, .stop = stop});
    };
    if (!stream.run<phasor::Classification>(run_texts, sink)) {
      report_error("interrupted");
      return kBadInput;  // not reached: the signal that came ends the program
    }
    finish();
    if (!quiet) {
      report_note(stream.summary(
          fmt::format("{} label{}", head.labels.size(), head.labels.size() == 1 ? "" : "s")));
    }
    return 0;
  }

  std::shared_ptr<const phasor::Model> model;
  const phasor::ClassifierHead& head;
  phasor::Encoder encoder;
};

/// The labels' numbers, the most likely first.
std::vector<size_t> by_logit(std::span<const float> logits) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return logits[i]; });
  return order;
}

constexpr const char* kClassifyFooter =
    R"(One line for each text: its most likely label (or the --top N), and the text. --json has all
labels, with logits. Probabilities are a softmax over the labels, a sigmoid where there is one
label or config.json asks for it, or the logit itself where config.json names Identity. A text
that is too long is cut.

Examples:
  infer classify -m distilbert-base-uncased-finetuned-sst-2-english "What a fine day."
  infer classify -m nli-model --pair "A dog was bitten." "Tom bit a dog."
  infer classify -m toxic-bert --json -i comments.txt)";

constexpr const char* kRankFooter =
    R"(The model is a reranker (a cross-encoder): it reads QUERY and a text together, and its one
label says how well they go together. Lines are ranked by its logit; the score is what
config.json makes of it, a sigmoid unless it names Identity. A text that is too long is cut.
Of many lines, find candidates first: infer embed -i FILE --nearest 100 QUERY.

Examples:
  infer rank -m ms-marco-MiniLM-L6-v2 "Who bit the dog?" "Tom bit a dog." "It rains."
  infer rank -m bge-reranker-base -i passages.txt --top 3 "Who bit the dog?"
  cat passages.txt | infer rank -m bge-reranker-base --json -i - "Who bit the dog?")";

/// A line and how well it goes with the query.
struct Ranked {
  float logit = 0;
  float score = 0;
  int64_t number = 0;  // from 1
  std::string text;

  /// Of equal lines the first comes first.
  bool operator<(const Ranked& other) const {
    return logit != other.logit ? logit > other.logit : number < other.number;
  }
};

/// The best lines in bounded memory.
class Ranking {
 public:
  explicit Ranking(int64_t most) : most_(most) {}

  void add(Ranked line) {
    lines_.push_back(std::move(line));
    if (std::ssize(lines_) >= 2 * most_ + 1000) drop();
  }
  /// Best first.
  const std::vector<Ranked>& sorted() {
    drop();
    std::ranges::sort(lines_, std::less());
    return lines_;
  }

 private:
  void drop() {
    if (std::ssize(lines_) <= most_) return;
    std::ranges::nth_element(lines_, lines_.begin() + most_, std::less());
    lines_.resize(most_);
  }

  int64_t most_;
  std::vector<Ranked> lines_;
};

void print(const std::string& query, const std::vector<Ranked>& ranking, bool json) {
  Output output;
  Json list = Json::array();
  std::string text = output.heading(printable(query)) + "\n";
  for (const auto& [logit, score, number, line] : ranking) {
    list.push_back({{"line", number}, {"score", score}, {"logit", logit}, {"text", line}});
    const std::string label = fmt::format("  {:8.4f}  line {:<7} ", score, number);
    const int room = std::max(output.width() - static_cast<int>(label.size()), 20);
    text += label + cut_right(printable(line), room) + "\n";
  }
  output.write(json ? one_line({{"query", query}, {"ranking", list}}) + "\n" : text);
}

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\v\f\n") == std::string::npos;
}

}  // namespace

int classify(int argc, char** argv) {
  ClassifyArguments arguments;
  std::optional<std::string> pair;
  CommandLine line("infer classify", "Names the most likely label of each TEXT, or of each line.",
                   kClassifyFooter);
  line.words("TEXT", "texts; - stands for the lines of standard input", arguments.words);
  line.option("--pair", "TEXT", "make a pair of every text and this one, which comes second", pair);
  line.option("--top", "N", "show the N most likely labels (default: 1, with --json all)",
              arguments.top, Range{1, kMostShown});
  add_options(line, arguments);
  if (const auto done = line.parse(argc, argv)) return *done;
  note_file_as_text(arguments.words, "-i", arguments.common);

  LineReader lines = lines_of("classify", arguments);
  Output output;
  Classifier classifier(arguments,
                        "choose a model saved with one (…ForSequenceClassification), or use infer "
                        "embed for sentence vectors");
  const std::vector<std::string>& labels = classifier.head.labels;
  const int64_t shown = arguments.top.value_or(arguments.common.json ? kMostShown : 1);
  const auto run = [&](auto texts, const phasor::ClassifyOptions& options) {
    if (!pair) return classifier.encoder.classify(texts, options);
    const std::vector<std::string_view> second(texts.size(), *pair);
    return classifier.encoder.classify(texts, second, options);
  };
  const auto write = [&](std::span<const Line> window, const phasor::Classification& result,
                         const PartialState&) {
    for (int64_t i = 0; i < result.size() && !output.closed(); ++i) {
      Json list = Json::array();
      std::vector<std::string> words;
      for (const size_t l : by_logit(result.logits(i))) {
        if (std::ssize(words) == shown) break;
        const float probability = result.probabilities(i)[l];
        list.push_back(
            {{"label", labels[l]}, {"probability", probability}, {"logit", result.logits(i)[l]}});
        words.push_back(fmt::format("{:.3f} {}", probability, printable(labels[l])));
      }
      const std::string label = fmt::format("{}  ", fmt::join(words, ", "));
      const int room = std::max(output.width() - display_width(label), 20);
      output.write(arguments.common.json
                       ? one_line({{"text", window[i].text}, {"labels", list}}) + "\n"
                       : label + cut_right(printable(window[i].text), room) + "\n");
    }
    return !output.closed();
  };
  return classifier.classify(lines, arguments.common.quiet, false, run, write, [] {});
}

int rank(int argc, char** argv) {
  ClassifyArguments arguments;
  std::optional<std::string> query;
  CommandLine line("infer rank", "Sorts texts, or the lines of a file, by relevance to QUERY.",
                   kRankFooter);
  line.option("QUERY", "", "what is searched for", query);
  line.words("TEXT", "what is ranked; - stands for the lines of standard input", arguments.words);
  line.option("--top", "N", "show the N best (default: 10 of a file, otherwise all)", arguments.top,
              Range{1, kMostShown});
  add_options(line, arguments);
  if (const auto done = line.parse(argc, argv)) return *done;
  if (!query || is_blank(*query)) {
    throw UsageError(fmt::format("rank: the query is {}; give it before the texts",
                                 query ? "empty" : "missing"));
  }
  LineReader lines = lines_of("rank", arguments);
  Classifier classifier(arguments,
                        "a sentence-embedding model searches with infer embed -i FILE --nearest N "
                        "QUERY");
  const std::vector<std::string>& labels = classifier.head.labels;
  if (labels.size() != 1) {
    throw phasor::InvalidArgument(
        fmt::format("rank needs a model with one label, and {} has {} ({}{}); infer classify shows "
                    "them",
                    arguments.common.model, labels.size(),
                    fmt::join(std::span(labels).first(std::min<size_t>(labels.size(), 5)), ", "),
                    labels.size() > 5 ? ", …" : ""));
  }
  Ranking ranking(arguments.top.value_or(arguments.input ? 10 : kMostShown));
  const auto run = [&](auto texts, const phasor::ClassifyOptions& options) {
    return classifier.encoder.classify(*query, texts, options);
  };
  const auto add = [&](std::span<const Line> window, const phasor::Classification& result,
                       const PartialState& state) {
    const int64_t first = state.lines - std::ssize(window) + 1;
    for (int64_t i = 0; i < result.size(); ++i) {
      if (is_blank(window[i].text)) continue;
      ranking.add({result.logits(i)[0], result.probabilities(i)[0], first + i, window[i].text});
    }
    return true;
  };
  return classifier.classify(lines, arguments.common.quiet, true, run, add,
                             [&] { print(*query, ranking.sorted(), arguments.common.json); });
}

}  // namespace infer
