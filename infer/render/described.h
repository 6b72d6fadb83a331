// What the commands say of themselves, as completions for shells and as the manual page.
#pragma once

#include <span>
#include <string>

#include "infer/cli/command_line.h"

namespace infer {

/// Commands in the order of describe_commands().
using Descriptions = std::span<const CommandDescription>;

std::string bash_completion(Descriptions commands);
std::string zsh_completion(Descriptions commands);
std::string fish_completion(Descriptions commands);
/// In roff, with the macros of man(7).
std::string manual_page(Descriptions commands);

}  // namespace infer
