// Names of --only, checked.
#include "infer/cli/only.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "infer/commands.h"

namespace infer {

void add_only(CommandLine& line, std::string_view what, std::vector<std::string>& only) {
  line.list("--only", "NAME",
            fmt::format("one {} instead of all; repeatable, or with commas", what), only,
            Commas::kYes);
}

std::vector<size_t> picked(const std::vector<std::string>& only,
                           std::span<const std::string_view> names,
                           const std::function<std::string(size_t)>& why_not) {
  for (const std::string& name : only) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw UsageError(fmt::format("--only: '{}' is none of {}{}", name, fmt::join(names, ", "),
                                 did_you_mean(name, names)));
  }
  std::vector<size_t> indices;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool named = std::ranges::find(only, names[i]) != only.end();
    const std::string why = why_not(i);
    if (named && !why.empty()) throw UsageError(fmt::format("--only {}: {}", names[i], why));
    if (named || (only.empty() && why.empty())) indices.push_back(i);
  }
  return indices;
}

}  // namespace infer
