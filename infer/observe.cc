// infer observe TEXT…: position through the layers of an encoder, before and after interventions.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "infer/commands.h"
#include "infer/html_report.h"
#include "infer/observe_corpus.h"
#include "infer/observe_figures.h"
#include "infer/observe_options.h"
#include "infer/observe_save.h"

namespace infer {
namespace {

Runs make_runs(const ObserveOptions& options, phasor::Encoder& encoder) {
  const phasor::ModelConfig& config = encoder.model().config();
  Subject before{.name = options.texts.common.model,
                 .encoder = encoder,
                 .options = run_options(options.texts, config.position)};
  Runs runs{.before = before, .after = std::nullopt};
  if (!options.interventions.any()) return runs;
  before.options = intervened(before.options, options.interventions, config);
  before.edits = options.interventions.edits;
  runs.after.emplace(std::move(before));
  return runs;
}

/// The texts of a batch, before and after.
std::vector<ObservedPair> observe_pairs(const Runs& runs, std::span<const Input> inputs,
                                        const Request& request, Progress& progress) {
  std::vector<ObservedPair> pairs;
  for (Observed& text : observe_texts(runs.before, inputs, request, progress)) {
    pairs.push_back({.before = std::move(text), .after = std::nullopt});
  }
  if (!runs.after) return pairs;
  std::vector<Observed> after = observe_texts(*runs.after, inputs, request, progress);
  for (size_t i = 0; i < pairs.size(); ++i) {
    pairs[i] = make_pair(std::move(pairs[i].before), std::move(after[i]));
  }
  return pairs;
}

/// Writes what was observed, text by text: to standard output, and as figures.
class Printer {
 public:
  Printer(const ObserveOptions& options, const Subject& run, size_t num_inputs)
      : options_(options), run_(run), num_inputs_(num_inputs) {
    if (!options.svg.empty()) figures_.emplace(options.svg, options.texts.common.quiet);
  }

  void print(const ObservedPair& pair) {
    if (!pair.before.corpus) {
      print_notes(options_.texts, run_.encoder, run_.options, pair.before, number_, num_inputs_);
    }
    if (figures_) {
      const std::string name = pair.before.corpus ? "texts" : fmt::format("text{}", number_ + 1);
      write_figures(pair, options_.shown, name, *figures_);
    }
    if (options_.texts.common.json) {
      output_.write(line(to_json(pair)) + "\n");
    } else if (options_.csv) {
      output_.write((number_ == 0 ? csv_head() : "") + to_csv(pair, number_ + 1));
    } else {
      output_.write((number_ == 0 ? "" : "\n") + to_text(pair, options_.shown, output_));
    }
    ++number_;
  }
  bool closed() const { return output_.closed(); }

 private:
  const ObserveOptions& options_;
  const Subject& run_;
  size_t num_inputs_;
  std::optional<FigureFolder> figures_;
  Output output_;
  size_t number_ = 0;
};

/// The lines of the file as one text.
ObservedPair observe_file(const ObserveOptions& options, const Runs& runs, const Request& request,
                          Progress& progress) {
  const phasor::Encoder& encoder = runs.before.encoder;
  TextOptions cut;
  cut.common.prefix = options.texts.common.prefix;
  cut.max_tokens = options.texts.max_tokens > 0
                       ? options.texts.max_tokens
                       : trained_length(encoder, runs.before.options).value_or(0);
  const std::vector<Input> inputs =
      read_inputs(encoder, cut, runs.before.options, read_lines(options.file));
  note_cut_texts(options.texts.common, options.file, inputs, cut.max_tokens);
  ObservedPair pair{.before = observe_corpus(runs.before, options.file, inputs, request, progress),
                    .after = std::nullopt};
  if (!runs.after) return pair;
  pair.after = observe_corpus(*runs.after, options.file, inputs, request, progress);
  pair.moved = deviations(*runs.after, runs.before, inputs, "texts, before and after", progress);
  return pair;
}

/// The text's one or two runs, which compare as before and after.
void add_to_page(const ObservedPair& pair, size_t number, HtmlReport& page) {
  for_each_run(pair, [&](const char* run, const Observed& text) {
    page.add_run(number, pair.after ? run : text.model, text);
  });
  if (pair.after) page.add_moved(number, pair.moved);
}

void write_files(const ObserveOptions& options, const Runs& runs, std::span<const Input> inputs,
                 std::span<const ObservedPair> pairs) {
  if (!options.texts.save.empty()) save_observed(options.texts, runs, inputs, pairs);
}

}  // namespace

int observe(int argc, char** argv) {
  ObserveOptions options;
  if (const auto done = parse_observe(argc, argv, options)) return *done;
  const CommonOptions& common = options.texts.common;
  const auto model = phasor::Model::load(common.model, {.language = common.language});
  check_head(options.shown, model->config());
  phasor::Encoder encoder(model, {.threads = common.threads, .precision = common.precision});
  const Runs runs = make_runs(options, encoder);
  const std::vector<Input> inputs = read_inputs(encoder, options.texts, runs.before.options);

  std::optional<HtmlReport> page;
  if (!options.html.empty()) page.emplace(options.html);
  const size_t on_page = page ? HtmlReport::kMostTexts : 0;

  Request request = request_for(options);
  const bool prints_patterns = request.patterns;
  Progress progress(common.quiet);
  Printer printer(options, runs.before, inputs.size());
  std::vector<ObservedPair> kept;
  size_t number = 0;
  for (const std::span<const Input> part : batches_of(inputs, on_page)) {
    if (printer.closed() && !page) break;
    request.patterns = prints_patterns || number < on_page;
    for (ObservedPair& pair : observe_pairs(runs, part, request, progress)) {
      progress.clear();
      if (page) add_to_page(pair, number, *page);
      ++number;
      if (options.writes_files()) {
        kept.push_back(std::move(pair));
      } else {
        printer.print(pair);
      }
    }
    request.seed += part.size();
  }
  // First the files: where one cannot be written, the error stands alone.
  if (options.writes_files()) write_files(options, runs, inputs, kept);
  for (const ObservedPair& pair : kept) printer.print(pair);
  if (!options.file.empty() && (page || !printer.closed())) {
    request.seed = options.seed;
    const ObservedPair corpus = observe_file(options, runs, request, progress);
    progress.clear();
    if (page) add_to_page(corpus, number, *page);
    printer.print(corpus);
  }
  if (page) page->write(common.quiet);
  return 0;
}

}  // namespace infer
