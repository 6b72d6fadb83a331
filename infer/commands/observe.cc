// infer TEXT… and infer observe TEXT…: position through the layers of an encoder, before and after
// interventions.
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "infer/commands.h"
#include "infer/commands/save_activations.h"
#include "infer/render/report.h"

namespace infer {
namespace {

constexpr const char* kRunFooter =
    R"(Examples:
  infer "Tom bit a dog." "Tom [MASK] a dog."
  infer --positions none "Tom bit a dog."
  infer compare sinusoidal learned "Tom bit a dog."
  cat sentences.txt | infer --json -
  infer -- "-a text that begins with a dash-"

Exit codes: 0 success, 2 usage, 3 bad input, 4 bad model, 5 backend.)";

constexpr const char* kObserveExamples = R"(Layers and heads count from 1, tokens from 0.

Examples:
  infer observe "Tom bit a dog."
  infer observe --edit reverse --edit scale=0.5 "Tom bit a dog."
  infer observe -m learned --csv "Tom bit a dog." > observed.csv
  infer observe -i sentences.txt --only probe --html page.html)";

Shown shown_of(const InputOptions& options, const phasor::ModelConfig& config) {
  Lacks lacks;
  if (!options.has_input())
    lacks.text = "give a text; the lines of -i are shown as means, which have none";
  if (!options.interventions.any())
    lacks.second_run = "give an --edit or --cut-residual that changes something";
  if (options.file.empty()) lacks.texts = "give a file of texts with -i FILE";
  return parse_views(options.views, options.as_text(), config, lacks);
}

/// `is_plain`: each text in one table. Returns the exit code.
int observe_texts(const InputOptions& options, bool is_plain) {
  const CommonOptions& common = options.common;
  const auto model = phasor::Model::load(common.model, load_options(common));
  const phasor::ModelConfig& config = model->config();
  const Shown shown = is_plain
                          ? Shown{.views = {&view("norm"), &view("effect"), &view("attention")}}
                          : shown_of(options, config);
  const phasor::Encoder encoder(model, encoder_options(common));
  const phasor::RunOptions how = {
      .positions = parse_positions(options.positions, config.position, options.mask),
      .overflow = options.overflow};
  const std::vector<lens::Run> runs = before_and_after(
      {.encoder = &encoder, .name = common.model, .options = how}, options.interventions);
  const std::vector<lens::Text> texts =
      make_texts(options.ids, read_texts(options.words, common.prefix));
  Report report(common, options.views, shown, is_plain ? to_short_text : to_text);
  if (options.positions == "none" && !is_plain && !common.quiet) {
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
    print_notes(options, encoder, how, observed[0], number++, texts.size());
    report.add_to_page(observed);
    report.print(observed);
    return report.wanted();
  };
  std::vector<Observed> first;  // of two texts, until the second says what both are together
  const auto show_together = [&](const std::vector<Observed>& observed) {
    if (texts.size() != 2) return show(observed);
    if (first.empty()) {
      first = observed;
      return true;
    }
    report.clear_progress();
    report.say(phasor::internal::say_pair(observed[0]));
    return show(first) && show(observed);
  };
  observe_and_save(options, runs, texts, report.observe_options(options.max_tokens), !is_plain,
                   show_together);

  if (!options.file.empty() && report.wanted()) {
    const std::vector<std::string> masked = read_lines(options.file);  // without --prefix
    std::vector<std::string> lines = masked;
    for (std::string& line : lines) line.insert(0, common.prefix);
    lens::ObserveOptions measured = report.observe_options(
        options.max_tokens > 0 ? options.max_tokens : trained_length(encoder, how).value_or(0));
    measured.masked = masked;
    std::vector<Observed> means = lens::observe_means(runs, make_texts({}, lines), measured);
    for (Observed& run : means) run.file = options.file;
    report.clear_progress();
    if (!common.quiet) note_texts(options.file, means[0], measured.tokenize.max_tokens);
    report.add_to_page(means);
    report.print(means);
  }
  report.finish();
  if (mask_as_text && !common.quiet)
    report_note("this model has no masked-language-model head: its mask was read as plain text");
  return 0;
}

}  // namespace

int run(CommandLine& line, std::string& hint) {
  InputOptions options;
  line.footer(kRunFooter);
  add_texts(line, options);
  add_save(line, options);
  add_top_k(line, options.views);
  add_common(line, kRun, options.common);
  if (const auto done = line.parse()) return *done;
  const std::vector<std::string_view> commands = command_names();
  if (!options.has_input()) {
    throw UsageError(
        fmt::format("give a text, like infer \"Tom bit a dog.\", or a command: {}; "
                    "infer --help says more",
                    fmt::join(commands, ", ")));
  }
  if (!options.words.empty() && !line.ends_options() &&
      std::ranges::count(commands, options.words[0])) {
    throw UsageError(
        fmt::format("{0} is a command, which comes first: infer {0} OPTIONS; as a "
                    "text: infer OPTIONS -- {0}",
                    options.words[0]));
  }
  take_texts(options, "infer - <");
  if (!hint.empty() && !options.common.quiet) report_note(std::exchange(hint, ""));
  return observe_texts(options, true);
}

int observe(CommandLine& line) {
  InputOptions options;
  line.footer(views_help() + kObserveExamples);
  add_texts(line, options);
  line.option("-i,--input", "FILE", "one text a line; means over these texts are shown",
              options.file);
  line.option("--max-tokens", "N", "", options.max_tokens, Range{1, 1LL << 31});
  line.list("--edit", "EDIT",
            "before and after a change of positions: zero, mean, scale=X, shift=N, swap=I,J, "
            "reverse, shuffle=SEED, repeat or table=FILE; several in order",
            options.interventions.edits);
  line.list("--cut-residual", "L", "the same for a residual connection: LAYER[.attn|.mlp]",
            options.interventions.cuts);
  add_views(line, options.views);
  add_top_k(line, options.views);
  add_save(line, options);
  add_common(line, kRun, options.common);
  if (const auto done = line.parse()) return *done;
  take_texts(options, "-i");
  if (!options.has_input() && options.file.empty())
    throw UsageError("observe: give a text, like infer observe \"Tom bit a dog.\"");
  if (!options.has_input() && !options.save.empty())
    throw UsageError("--save is for texts, not for the lines of -i; give a text");
  return observe_texts(options, false);
}

}  // namespace infer
