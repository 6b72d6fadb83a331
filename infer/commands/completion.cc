// infer completion: what may come next on the command line, scripts for shells that ask for it, and
// the manual page, from what the commands' options are.
#include <array>
#include <utility>

#include "infer/cli/options.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/render/described.h"

namespace infer {
namespace {

constexpr const char* kCompletionFooter = R"(Examples:
  infer completion bash > ~/.local/share/bash-completion/completions/infer
  infer completion zsh > ~/.zfunc/_infer     with ~/.zfunc in $fpath
  infer completion fish > ~/.config/fish/completions/infer.fish
  infer completion man | man -l -)";

constexpr std::array<std::string_view, 4> kKinds = {"bash", "zsh", "fish", "man"};
constexpr std::array kRender = {bash_completion, zsh_completion, fish_completion, manual_page};

}  // namespace

int completion(int argc, char** argv) {
  std::vector<std::string> words;
  CommandLine line("infer completion",
                   "Prints a script that completes commands, options and values.",
                   kCompletionFooter);
  line.words("SHELL", "bash, zsh or fish; or man, for the manual page", words);
  line.among(kKinds);
  if (const auto done = line.parse(argc, argv)) return *done;
  if (!words.empty() && words[0] == "words") {
    words.erase(words.begin());
    Output().write(completed(describe_commands(), std::move(words)));
    return 0;
  }
  if (words.size() > 1) throw UsageError("completion: name one shell");
  const std::string kind = words.empty() ? "" : words[0];
  const size_t i = parse_name("completion", kind, {.what = "shell", .all = kKinds});
  Output().write(kRender[i](describe_commands()));
  return 0;
}

}  // namespace infer
