// Errors with formatted messages.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "phasor/errors.h"

namespace phasor::internal {

/// Throws an E (ModelError, InvalidArgument, …) whose message fmt::format() makes.
template <typename E, typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> message, Args&&... args) {
  throw E(fmt::format(message, std::forward<Args>(args)...));
}

/// With this code in place of the class's own.
template <typename E, typename... Args>
[[noreturn]] void refuse(ErrorCode code, fmt::format_string<Args...> message, Args&&... args) {
  throw E(fmt::format(message, std::forward<Args>(args)...), code);
}

/// A text of a call, by its number, may not be cut, and has more tokens than are run.
struct TooLong : InvalidArgument {
  TooLong(int64_t text, int64_t tokens, std::string_view most)
      : InvalidArgument(fmt::format("text {}: {} tokens are too many: {}", text, tokens, most),
                        ErrorCode::kTooLong),
        text(text),
        tokens(tokens) {}
  int64_t text, tokens;
};

}  // namespace phasor::internal
