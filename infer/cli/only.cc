// Names of --only, checked.
#include "infer/cli/only.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "infer/commands.h"

namespace infer {

void add_only(CLI::App& app, std::string_view what, std::vector<std::string>& only) {
  app.add_option("--only", only,
                 fmt::format("one {} instead of all; repeatable, or with commas", what))
      ->type_name("NAME")
      ->delimiter(',')
      ->allow_extra_args(false);
}

std::vector<size_t> picked(const std::vector<std::string>& only,
                           std::span<const std::string_view> names,
                           const std::function<std::string(size_t)>& why_not) {
  for (const std::string& name : only) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw UsageError(fmt::format("--only: '{}' is none of {}", name, fmt::join(names, ", ")));
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
