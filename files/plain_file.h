// What is wrong with a model's file is a ModelError; with the user's own, InvalidArgument.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include "files/files.h"
#include "phasor/errors.h"

namespace phasor::internal {

/// The result of body(), which reads a file that the user named. Messages begin with `what`.
template <typename Body>
auto as_input(const std::string& what, Body body) {
  try {
    return body();
  } catch (const ModelError& error) {
    throw InvalidArgument(what + error.what());
  }
}

/// Why a file cannot be opened, in the words that a model's files have.
inline const char* why_not_opened(int error) {
  return error == ENOENT ? "no such file" : std::strerror(error);
}

}  // namespace phasor::internal
