// What a program ends with, and the error of a command line that is wrong.
#pragma once

#include <fmt/format.h>

#include <stdexcept>

#include "phasor/errors.h"

namespace infer {

/// Exit codes. 0: good.
inline constexpr int kUsage = 2;
inline constexpr int kBadInput = 3;
inline constexpr int kBadModel = 4;
inline constexpr int kBackend = 5;

/// The command line itself is wrong.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What `read` makes of an option's value; UsageError where it throws InvalidArgument.
template <typename Read>
auto of_option(const char* option, const Read& read) {
  try {
    return read();
  } catch (const phasor::InvalidArgument& error) {
    throw UsageError(fmt::format("{}: {}", option, error.what()));
  }
}

}  // namespace infer
