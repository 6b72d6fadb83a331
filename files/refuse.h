// Errors with formatted messages.
#pragma once

#include <fmt/format.h>

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

}  // namespace phasor::internal
