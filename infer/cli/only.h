// --only: some of what a command shows, by name.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "infer/cli/command_line.h"

namespace infer {

/// --only for things of the kind `what` ("view"), repeatable or with commas.
void add_only(CommandLine& line, std::string_view what, std::vector<std::string>& only);

/// Which of `names` are shown, by index, ascending: those in `only`, or else all that can be.
/// `why_not(i)` says what names[i] lacks, and nothing where it lacks nothing. Throws UsageError for
/// a name that there is not, and for one that cannot be shown.
std::vector<size_t> picked(const std::vector<std::string>& only,
                           std::span<const std::string_view> names,
                           const std::function<std::string(size_t)>& why_not);

}  // namespace infer
