// The description of a model as JSON, for `infer info` and the C interface.
#pragma once

#include <string>

#include "phasor/model.h"

namespace phasor::internal {

/// An object with the groups and keys that `infer info --json` prints. Parts that a model lacks
/// is left out; "tokenizer" and "sentence" hold the "problem" instead where the files have one.
std::string model_info(const Model& model);

}  // namespace phasor::internal
