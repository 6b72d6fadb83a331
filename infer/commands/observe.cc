// infer observe TEXT…: position through the layers of an encoder, before and after interventions.
#include "infer/cli/progress.h"
#include "infer/cli/study.h"
#include "infer/cli/text_options.h"
#include "infer/cli/view_options.h"
#include "infer/commands.h"
#include "infer/commands/save_activations.h"
#include "infer/render/html_report.h"
#include "infer/render/print.h"

namespace infer {
namespace {

constexpr const char* kObserveDescription =
    "Shows what every layer of an encoder does with the positions of each TEXT, and what changes "
    "when the\npositions are edited or a residual connection is cut.";

constexpr const char* kObserveExamples = R"(Layers and heads count from 1, tokens from 0.

Examples:
  infer observe "Tom bit a dog."
  infer observe --cut-residual 1.attn --only direct "Tom bit a dog."
  infer observe --edit reverse --edit scale=0.5 "Tom bit a dog."
  infer observe --only pattern --head 2.1 "Tom bit a dog."
  infer observe -m learned --csv "Tom bit a dog." > observed.csv
  infer observe --html page.html --edit reverse "Tom bit a dog."
  infer observe -i sentences.txt --only probe)";

struct ObserveArguments {
  TextOptions texts;
  ViewOptions views;
  Interventions interventions;
  std::string file;  // whose lines are observed as one; empty: there is none
};

std::optional<int> parse_arguments(int argc, char** argv, ObserveArguments& arguments) {
  CommandLine line("infer observe", kObserveDescription, views_help() + kObserveExamples);
  add_texts(line, arguments.texts);
  line.option("-i,--input", "FILE", "one text a line; means over these texts are shown",
              arguments.file);
  line.option("--max-tokens", "N", "cut every text to N tokens", arguments.texts.max_tokens,
              Range{1, 1LL << 31});
  add_interventions(line, arguments.interventions);
  add_views(line, arguments.views);
  add_head(line, arguments.views);
  add_top_k(line, arguments.views);
  add_save(line, arguments.texts);
  add_run(line, arguments.texts.common);
  if (const auto done = line.parse(argc, argv)) return done;
  take_texts(arguments.texts);
  if (!arguments.texts.has_input() && arguments.file.empty()) {
    throw UsageError("observe: give a text, like infer observe \"Tom bit a dog.\"");
  }
  if (arguments.views.csv && arguments.texts.common.json) {
    throw UsageError("--csv and --json exclude each other; give one of them");
  }
  if (!arguments.texts.save.empty() && !arguments.texts.has_input()) {
    throw UsageError("--save is for texts, not for the lines of -i; give a text");
  }
  return std::nullopt;
}

Shown shown_of(const ObserveArguments& arguments, const phasor::ModelConfig& config) {
  const bool as_text = !arguments.texts.common.json && !arguments.views.csv;
  return parse_views(arguments.views, as_text, config, [&](Needs needs) -> std::string {
    if (needs == Needs::kOneText && !arguments.texts.has_input()) {
      return "give a text; the lines of -i are shown as means, which have none";
    }
    const bool two = needs == Needs::kTwoRuns || needs == Needs::kTwoRunsOfFile;
    if (two && !arguments.interventions.any())
      return "give an --edit or --cut-residual that changes something";
    const bool many = needs == Needs::kManyTexts || needs_file(needs);
    return many && arguments.file.empty() ? "give a file of texts with -i FILE" : "";
  });
}

/// Adds what untrained models show of each text to its runs.
void add_baseline(const Baseline& baseline, std::span<const Input> inputs, Request request,
                  const Stages& stages, std::vector<std::vector<Observed>>& texts) {
  request.patterns = request.arrays = false;
  std::vector<std::vector<std::vector<Observed>>> seeds;
  for (const std::vector<Subject>& subjects : baseline.subjects())
    seeds.push_back(observe_texts(subjects, inputs, request, stages));
  for (size_t i = 0; !seeds.empty() && i < texts.size(); ++i) {
    for (size_t side = 0; side < baseline.subjects()[0].size(); ++side) {
      std::vector<Observed> of_side;
      for (std::vector<std::vector<Observed>>& seed : seeds)
        of_side.push_back(std::move(seed[i][side]));
      texts[i].push_back(over_seeds(of_side));
    }
  }
}

}  // namespace

int observe(int argc, char** argv) {
  ObserveArguments arguments;
  if (const auto done = parse_arguments(argc, argv, arguments)) return *done;
  TextOptions& texts = arguments.texts;
  const CommonOptions& common = texts.common;
  const auto model = phasor::Model::load(common.model, load_options(common));
  const Shown shown = shown_of(arguments, model->config());
  phasor::Encoder encoder(model, {.threads = common.threads, .precision = common.precision});
  std::vector<Subject> subjects =
      before_and_after({.label = "",
                        .name = common.model,
                        .encoder = encoder,
                        .options = run_options(texts, model->config().position)},
                       arguments.interventions);
  const Baseline baseline(subjects, baseline_seeds(arguments.views), common.threads);
  if (!baseline.subjects().empty() && subjects.size() == 1) subjects[0].label = "trained";
  const std::vector<Input> inputs = read_inputs(*model, texts, subjects[0].options);

  Request request = request_for(arguments.views, shown);
  request.arrays = !texts.save.empty();
  std::optional<HtmlReport> page;
  if (!arguments.views.html.empty()) page.emplace(arguments.views.html);
  const size_t on_page = page ? HtmlReport::kMostTexts : 0;
  ProgressLine progress(common.quiet);
  const Stages stages{progress.stages()};
  Output output;
  size_t number = 0;
  const auto show = [&](const std::vector<Observed>& runs) {
    progress.clear();
    if (!runs[0].many)
      print_notes(texts, encoder, subjects[0].options, runs[0], number, inputs.size());
    print(runs, ++number, common, arguments.views, shown, output);
  };

  std::vector<std::vector<Observed>> unsaved;  // are shown when they are saved
  for (const std::span<const Input> part : batches_of(inputs, on_page)) {
    if (output.closed() && !page) break;
    request.patterns = request.asks("pattern") || number + unsaved.size() < on_page;
    std::vector<std::vector<Observed>> observed = observe_texts(subjects, part, request, stages);
    add_baseline(baseline, part, request, stages, observed);
    for (std::vector<Observed>& runs : observed) {
      if (page) page->add(runs);
      if (texts.save.empty()) {
        show(runs);
      } else {
        unsaved.push_back(std::move(runs));
      }
    }
    request.seed += part.size();
  }
  // First the file: where it cannot be written, the error stands alone.
  if (!texts.save.empty()) {
    save_activations(texts.save, texts.hooks, subjects, inputs, unsaved);
  }
  for (const std::vector<Observed>& runs : unsaved) show(runs);

  if (!arguments.file.empty() && (page || !output.closed())) {
    request.lines = read_lines(arguments.file);
    request.max_tokens = texts.max_tokens > 0
                             ? texts.max_tokens
                             : trained_length(encoder, subjects[0].options).value_or(0);
    request.seed = arguments.views.seed;
    std::vector<std::string> prefixed = request.lines;
    for (std::string& line : prefixed) line.insert(0, common.prefix);
    const std::vector<std::vector<Input>> lines(
        subjects.size(),
        make_inputs(*model, {}, prefixed, tokenize_options(common, request.max_tokens)));
    if (!common.quiet) note_inputs(arguments.file, lines[0], request.max_tokens);
    std::vector<Observed> runs = observe_runs(subjects, arguments.file, lines, request, stages);
    add_baseline(baseline, arguments.file, lines, request, stages, runs);
    if (page) page->add(runs);
    show(runs);
  }
  if (page) page->write(common.quiet);
  print_mask_note(common, inputs);
  return 0;
}

}  // namespace infer
