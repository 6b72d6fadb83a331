// What is wrong with a model's file is a ModelError; with the user's own, InvalidArgument.
#pragma once

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

}  // namespace phasor::internal
