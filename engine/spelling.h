// Suggestions for misspelled names: one rule for models, options, kinds and views.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace phasor::internal {

/// The one of `names` that `word` is most likely a misspelling of; empty where there is none.
std::string_view nearest_name(std::string_view word, std::span<const std::string_view> names);
/// "; did you mean NAME?", or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> names);

}  // namespace phasor::internal
