// The three exceptions phasor throws, told apart by whose turn it is to act.
//
// A message is one line: what is wrong, the offending value, the allowed range, what to do. Nothing
// else is thrown on purpose; std::bad_alloc passes through. After a throw the object that threw is
// as usable as before. The library never aborts, never exits and never prints.
#pragma once

#include <stdexcept>

namespace phasor {

/// The caller's input: a token id out of range, an empty text, a text too long for the table.
class InvalidArgument : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// The checkpoint's files: missing, truncated, contradictory, or of a kind phasor does not
/// implement.
class ModelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// oneDNN refused to create or run a primitive.
class BackendError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace phasor
