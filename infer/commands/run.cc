// infer TEXT…: what each layer of an encoder does with the positions of a text's tokens.
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/commands/observe.h"

namespace infer {
namespace {

constexpr const char* kRunDescription =
    "Runs a Transformer encoder on each TEXT and shows what every layer does with its positions.";

constexpr const char* kRunExamples =
    R"(

Examples:
  infer "Tom bit a dog." "A dog bit Tom."
  infer "Tom [MASK] a dog."
  infer --positions none "Tom bit a dog."
  infer compare sinusoidal learned "Tom bit a dog."
  infer -m learned --save states.safetensors "Tom bit a dog."
  cat sentences.txt | infer --json -
  infer -- -a text that begins with a dash-

Exit codes: 0 success, 2 usage, 3 bad input, 4 bad model, 5 backend.)";

/// The exit code where the arguments say all there is to do.
std::optional<int> parse_arguments(int argc, char** argv, InputOptions& texts, ViewOptions& views) {
  CommandLine line("infer", kRunDescription, list_of_commands() + kRunExamples);
  add_texts(line, texts);
  add_save(line, texts);
  add_top_k(line, views);
  add_run(line, texts.common);
  if (const auto done = line.parse(argc, argv)) return done;
  take_texts(texts, "infer - <");
  if (texts.has_input()) return std::nullopt;
  write_stderr(short_help());
  return kUsage;
}

}  // namespace

int run(int argc, char** argv) {
  ObserveArguments arguments;
  arguments.is_plain = true;
  const auto done = parse_arguments(argc, argv, arguments.texts, arguments.views);
  return done ? *done : observe_texts(arguments);
}

}  // namespace infer
