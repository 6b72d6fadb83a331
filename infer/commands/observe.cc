// infer observe TEXT…: position through the layers of an encoder, before and after interventions.
#include <fmt/format.h>

#include "infer/cli/input_options.h"
#include "infer/cli/terminal.h"
#include "infer/cli/view_options.h"
#include "infer/commands.h"
#include "infer/commands/save_activations.h"
#include "infer/render/page.h"
#include "infer/render/print.h"

namespace infer {
namespace {

constexpr const char* kObserveExamples = R"(Layers and heads count from 1, tokens from 0.

Examples:
  infer observe "Tom bit a dog."
  infer observe --edit reverse --edit scale=0.5 "Tom bit a dog."
  infer observe -m learned --csv "Tom bit a dog." > observed.csv
  infer observe -i sentences.txt --only probe --html page.html)";

struct ObserveArguments {
  InputOptions texts;
  ViewOptions views;
  Interventions interventions;
  std::string file;  // whose lines are observed as one; empty: there is none
};

std::optional<int> parse_arguments(CommandLine& line, ObserveArguments& arguments) {
  line.footer(views_help() + kObserveExamples);
  add_texts(line, arguments.texts);
  line.option("-i,--input", "FILE", "one text a line; means over these texts are shown",
              arguments.file);
  line.option("--max-tokens", "N", "", arguments.texts.max_tokens, Range{1, 1LL << 31});
  add_interventions(line, arguments.interventions);
  add_views(line, arguments.views);
  add_top_k(line, arguments.views);
  add_save(line, arguments.texts);
  add_common(line, kRun, arguments.texts.common);
  if (const auto done = line.parse()) return done;
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
  Lacks lacks;
  if (!arguments.texts.has_input())
    lacks.text = "give a text; the lines of -i are shown as means, which have none";
  if (!arguments.interventions.any())
    lacks.second_run = "give an --edit or --cut-residual that changes something";
  if (arguments.file.empty()) lacks.texts = "give a file of texts with -i FILE";
  return parse_views(arguments.views, as_text, config, lacks);
}

}  // namespace

int observe(CommandLine& line) {
  ObserveArguments arguments;
  if (const auto done = parse_arguments(line, arguments)) return *done;
  InputOptions& texts = arguments.texts;
  const CommonOptions& common = texts.common;
  const auto model = phasor::Model::load(common.model, load_options(common));
  const Shown shown = shown_of(arguments, model->config());
  phasor::Encoder encoder(model, encoder_options(common));
  const std::vector<lens::Run> runs =
      before_and_after({.encoder = &encoder,
                        .name = common.model,
                        .options = run_options(texts, model->config().position)},
                       arguments.interventions);
  const std::vector<lens::Text> inputs =
      make_texts(texts.ids, read_texts(texts.words, common.prefix));
  std::optional<HtmlReport> page;
  if (!arguments.views.html.empty())
    page.emplace(arguments.views.html, named_views(arguments.views, shown), shown.heads);
  ProgressLine progress(common.quiet);
  const auto options = [&](int64_t max_tokens) {
    lens::ObserveOptions options = observe_options(arguments.views, shown);
    options.tokenize = tokenize_options(common, max_tokens);
    options.progress = progress.stages();
    return options;
  };
  if (texts.positions == "none" && !common.quiet) {
    report_note(fmt::format(
        "--positions none leaves no positions to observe; infer compare {} --positions own "
        "--positions none TEXT shows what they do",
        common.model));
  }
  Output output;
  size_t number = 0;
  bool mask_as_text = false;
  const auto show = [&](const std::vector<Observed>& observed) {
    progress.clear();
    if (page) page->add(observed);
    if (!observed[0].means) {
      mask_as_text |= observed[0].mask_as_text;
      print_notes(texts, encoder, runs[0].options, observed[0], number, inputs.size());
    }
    print(observed, ++number, common, arguments.views, shown, output);
    return page || !output.closed();
  };
  lens::ObserveOptions of_texts = options(texts.max_tokens);
  of_texts.arrays_of = page ? HtmlReport::kMostTexts : 0;
  observe_and_save(texts, runs, inputs, std::move(of_texts), true, show);

  if (!arguments.file.empty() && (page || !output.closed())) {
    std::vector<std::string> lines = read_lines(arguments.file);
    lens::ObserveOptions of_lines =
        options(texts.max_tokens > 0 ? texts.max_tokens
                                     : trained_length(encoder, runs[0].options).value_or(0));
    const std::vector<std::string> masked = lines;  // without --prefix
    of_lines.masked = masked;
    for (std::string& line : lines) line.insert(0, common.prefix);
    std::vector<Observed> means = lens::observe_means(runs, make_texts({}, lines), of_lines);
    for (Observed& run : means) run.file = arguments.file;
    progress.clear();
    if (!common.quiet) note_texts(arguments.file, means[0], of_lines.tokenize.max_tokens);
    show(means);
  }
  if (page) page->write(common.quiet);
  if (mask_as_text) print_mask_note(common);
  return 0;
}

}  // namespace infer
