// infer TEXT…: what each layer of an encoder does with the positions of a text's tokens.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "infer/cli/input_options.h"
#include "infer/cli/terminal.h"
#include "infer/cli/view_options.h"
#include "infer/commands.h"
#include "infer/commands/save_activations.h"
#include "infer/render/observed_text.h"

namespace infer {
namespace {

constexpr const char* kFooter =
    R"(Examples:
  infer "Tom bit a dog." "Tom [MASK] a dog."
  infer --positions none "Tom bit a dog."
  infer compare sinusoidal learned "Tom bit a dog."
  cat sentences.txt | infer --json -
  infer -- "-a text that begins with a dash-"

Exit codes: 0 success, 2 usage, 3 bad input, 4 bad model, 5 backend.)";

/// The exit code where the arguments say all there is to do.
std::optional<int> parse_arguments(CommandLine& line, InputOptions& texts, ViewOptions& views) {
  line.footer(kFooter);
  add_texts(line, texts);
  add_save(line, texts);
  add_top_k(line, views);
  add_common(line, kRun, texts.common);
  if (const auto done = line.parse()) return done;
  const std::vector<std::string_view> commands = command_names();
  if (!texts.has_input())
    throw UsageError(
        fmt::format("give a text, like infer \"Tom bit a dog.\", or a command: {}; "
                    "infer --help says more",
                    fmt::join(commands, ", ")));
  if (!texts.words.empty() && !line.ends_options() && std::ranges::count(commands, texts.words[0]))
    throw UsageError(
        fmt::format("{0} is a command, which comes first: infer {0} OPTIONS; as a "
                    "text: infer OPTIONS -- {0}",
                    texts.words[0]));
  take_texts(texts, "infer - <");
  return std::nullopt;
}

}  // namespace

int run(CommandLine& line, const std::string& hint) {
  InputOptions texts;
  ViewOptions views;
  if (const auto done = parse_arguments(line, texts, views)) return *done;
  const CommonOptions& common = texts.common;
  const auto model = phasor::Model::load(common.model, load_options(common));
  const phasor::RunOptions options = run_options(texts, model->config().position);
  phasor::Encoder encoder(model, encoder_options(common));
  const lens::Run run{.encoder = &encoder, .name = common.model, .options = options};
  const std::vector<lens::Text> inputs =
      make_texts(texts.ids, read_texts(texts.words, common.prefix));
  ProgressLine progress(common.quiet);
  Output output;
  size_t number = 0;
  bool mask_as_text = false;
  const auto show = [&](const std::vector<Observed>& observed) {
    progress.clear();
    const Observed& text = observed[0];
    mask_as_text |= text.mask_as_text;
    print_notes(texts, encoder, options, text, number, inputs.size());
    common.json ? output.write(lens::to_json({&text, 1}) + "\n")
                : output.show((number == 0 ? "" : "\n") + to_short_text(text, output));
    ++number;
    return !output.closed();
  };
  observe_and_save(texts, {&run, 1}, inputs,
                   {.views = {"norm", "effect", "attention"},
                    .top_k = views.top_k,
                    .tokenize = tokenize_options(common),
                    .progress = progress.stages()},
                   false, show);
  if (mask_as_text) print_mask_note(common);
  if (!hint.empty() && !common.quiet) report_note(hint);
  return 0;
}

}  // namespace infer
