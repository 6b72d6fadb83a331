// What a program ends with, and the error of a command line that is wrong.
#pragma once

#include <stdexcept>

namespace infer {

/// Exit codes. 0: good.
inline constexpr int kCheckFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kBadInput = 3;
inline constexpr int kBadModel = 4;
inline constexpr int kBackend = 5;

/// The command line itself is wrong.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace infer
