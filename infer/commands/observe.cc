// infer observe TEXT…: position through the layers of an encoder, before and after interventions.
#include "infer/commands.h"
#include "infer/commands/observe_options.h"
#include "infer/commands/observe_results.h"
#include "infer/experiment/observe_corpus.h"

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

void observe_inputs(const Runs& runs, std::span<const Input> inputs, Request request,
                    Progress& progress, ObserveResults& results) {
  const bool all_patterns = request.patterns;
  size_t number = 0;
  for (const std::span<const Input> part : batches_of(inputs, results.texts_on_page())) {
    if (!results.wanted()) break;
    request.patterns = all_patterns || number < results.texts_on_page();
    for (ObservedPair& pair : observe_pairs(runs, part, request, progress)) {
      progress.clear();
      results.add(std::move(pair));
    }
    number += part.size();
    request.seed += part.size();
  }
  results.end_texts();
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

  const Request request = request_for(options);
  Progress progress(common.quiet);
  ObserveResults results(options, runs, inputs);
  observe_inputs(runs, inputs, request, progress, results);
  if (!options.file.empty() && results.wanted()) {
    ObservedPair corpus = observe_file(options, runs, request, progress);
    progress.clear();
    results.add(std::move(corpus));
  }
  results.finish();
  return 0;
}

}  // namespace infer
