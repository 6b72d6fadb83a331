// infer observe TEXT…: position through the layers of an encoder, before and after interventions.
#include "infer/commands/observe.h"

#include <fmt/format.h>

#include "infer/commands.h"
#include "infer/render/report.h"

namespace infer {
namespace {

constexpr const char* kObserveExamples = R"(Layers and heads count from 1, tokens from 0.

Examples:
  infer observe "Tom bit a dog."
  infer observe --edit reverse --edit scale=0.5 "Tom bit a dog."
  infer observe -m learned --csv "Tom bit a dog." > observed.csv
  infer observe -i sentences.txt --only probe --html page.html)";

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
  if (!arguments.texts.save.empty() && !arguments.texts.has_input()) {
    throw UsageError("--save is for texts, not for the lines of -i; give a text");
  }
  return std::nullopt;
}

Shown shown_of(const ObserveArguments& arguments, const phasor::ModelConfig& config) {
  if (arguments.is_plain) return {.views = {&view("norm"), &view("effect"), &view("attention")}};
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

int observe_texts(const ObserveArguments& arguments) {
  const InputOptions& texts = arguments.texts;
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
  Report report(common, arguments.views, shown, arguments.is_plain ? to_short_text : to_text);
  if (texts.positions == "none" && !arguments.is_plain && !common.quiet) {
    report_note(fmt::format(
        "--positions none leaves no positions to observe; infer compare {} --positions own "
        "--positions none TEXT shows what they do",
        common.model));
  }
  size_t number = 0;
  bool mask_as_text = false;
  const auto show = [&](const std::vector<Observed>& observed) {
    mask_as_text |= observed[0].mask_as_text;
    report.clear_progress();
    print_notes(texts, encoder, runs[0].options, observed[0], number++, inputs.size());
    report.add_to_page(observed);
    report.print(observed);
    return report.wanted();
  };
  observe_and_save(texts, runs, inputs, report.observe_options(texts.max_tokens),
                   !arguments.is_plain, show);

  if (!arguments.file.empty() && report.wanted()) {
    const std::vector<std::string> masked = read_lines(arguments.file);  // without --prefix
    std::vector<std::string> lines = masked;
    for (std::string& line : lines) line.insert(0, common.prefix);
    lens::ObserveOptions options = report.observe_options(
        texts.max_tokens > 0 ? texts.max_tokens
                             : trained_length(encoder, runs[0].options).value_or(0));
    options.masked = masked;
    std::vector<Observed> means = lens::observe_means(runs, make_texts({}, lines), options);
    for (Observed& run : means) run.file = arguments.file;
    report.clear_progress();
    if (!common.quiet) note_texts(arguments.file, means[0], options.tokenize.max_tokens);
    report.add_to_page(means);
    report.print(means);
  }
  report.finish();
  if (mask_as_text) print_mask_note(common);
  return 0;
}

int observe(CommandLine& line) {
  ObserveArguments arguments;
  const auto done = parse_arguments(line, arguments);
  return done ? *done : observe_texts(arguments);
}

}  // namespace infer
