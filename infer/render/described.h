// What the commands say of themselves, as completions for shells and as the manual page.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "infer/cli/command_line.h"

namespace infer {

/// Commands in the order of describe_commands().
using Descriptions = std::span<const CommandDescription>;

/// Scripts, which ask `infer completion words -- WORDS...` for what may come next.
std::string bash_completion(Descriptions commands);
std::string zsh_completion(Descriptions commands);
std::string fish_completion(Descriptions commands);
/// What the last of `words`, those behind "infer", may become: "files" or "words", whether a file's
/// name is one of it; then a line for each word with a tab and its help.
std::string completed(Descriptions commands, std::vector<std::string> words);
/// In roff, with the macros of man(7).
std::string manual_page(Descriptions commands);

}  // namespace infer
