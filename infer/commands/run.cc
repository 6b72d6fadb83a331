// infer TEXT…: what each layer of an encoder does with the positions of a text's tokens.
#include <fmt/format.h>

#include <span>

#include "infer/cli/text_options.h"
#include "infer/commands.h"
#include "infer/experiment/activations.h"
#include "infer/experiment/observation.h"
#include "infer/files/save.h"
#include "infer/render/report.h"
#include "infer/render/terminal.h"

namespace infer {
namespace {

constexpr const char* kDescription =
    "Runs a Transformer encoder on each TEXT and shows what every layer does with its positions.";

constexpr const char* kFooter = R"(

Examples:
  infer "Tom bit a dog." "A dog bit Tom."
  infer "Tom [MASK] a dog."
  infer --positions none "Tom bit a dog."
  infer compare sinusoidal learned "Tom bit a dog."
  infer -m learned --save states.safetensors "Tom bit a dog."
  cat sentences.txt | infer --json -
  infer -- -a text that begins with a dash-

Exit codes: 0 good, 1 a check failed, 2 usage, 3 bad input, 4 bad model, 5 backend.)";

/// The exit code where the arguments say all there is to do.
std::optional<int> parse_arguments(int argc, char** argv, TextOptions& arguments) {
  CommandLine line("infer", kDescription, list_of_commands() + kFooter);
  add_texts(line, arguments);
  add_save(line, arguments);
  add_threads(line, arguments.common);
  add_precision(line, arguments.common);
  add_json_and_quiet(line, arguments.common);
  if (const auto done = line.parse(argc, argv)) return done;

  take_texts(arguments, "infer - <");
  if (!arguments.has_input()) {
    fmt::print(stderr, "{}", short_help());
    return kUsage;
  }
  return std::nullopt;
}

void save_all(phasor::Encoder& encoder, std::span<const Input> inputs,
              const phasor::RunOptions& options, const TextOptions& arguments) {
  const std::vector<Recording> recordings = record_all(arguments, encoder, inputs, options);
  Activations activations;
  for_each_sequence(recordings, [&](size_t number, const Recording& recording, int64_t i) {
    activations.add(fmt::format("{}.", number), recording, i);
  });
  save(arguments.save, activations.tensors(), metadata(arguments, encoder, options, recordings));
}

}  // namespace

int run(int argc, char** argv) {
  TextOptions arguments;
  if (const auto done = parse_arguments(argc, argv, arguments)) return *done;
  const auto model =
      phasor::Model::load(arguments.common.model, {.language = arguments.common.language});
  const phasor::RunOptions options = run_options(arguments, model->config().position);
  phasor::Encoder encoder(
      model, {.threads = arguments.common.threads, .precision = arguments.common.precision});
  const std::vector<Input> inputs = read_inputs(encoder, arguments, options);
  // First the file: where it cannot be written, the error stands alone.
  if (!arguments.save.empty()) save_all(encoder, inputs, options, arguments);

  const Subject subject{.name = arguments.common.model, .encoder = encoder, .options = options};
  const Request request{.measures = {Measure::kEffect, Measure::kAttention}};
  Progress progress(arguments.common.quiet);
  Output output;
  size_t number = 0;
  for (const std::span<const Input> part : batches_of(inputs)) {
    if (output.closed()) break;
    for (const Observed& text : observe_texts(subject, part, request, progress)) {
      print_notes(arguments, encoder, options, text, number, inputs.size());
      output.write(arguments.common.json ? summary_json(text) + "\n"
                                         : (number == 0 ? "" : "\n") + to_text(text, output));
      ++number;
    }
  }
  return 0;
}

}  // namespace infer
