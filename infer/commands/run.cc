// infer TEXT…: what each layer of an encoder does with the positions of a text's tokens.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/commands/observe.h"

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
  ObserveArguments arguments;
  arguments.is_plain = true;
  if (const auto done = parse_arguments(line, arguments.texts, arguments.views)) return *done;
  const int code = observe_texts(arguments);
  if (!hint.empty() && !arguments.texts.common.quiet) report_note(hint);
  return code;
}

}  // namespace infer
