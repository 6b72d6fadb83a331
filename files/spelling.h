// Numbers that users write, and suggestions for misspelled names: one rule for models, options,
// kinds and views.
#pragma once

#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace phasor::internal {

/// The whole of `text` as a number; empty where it is none.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  return problem == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

/// The one of `names` that `word` is most likely a misspelling of; empty where there is none.
std::string_view nearest_name(std::string_view word, std::span<const std::string_view> names);
/// "; did you mean NAME?", or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> names);

}  // namespace phasor::internal
