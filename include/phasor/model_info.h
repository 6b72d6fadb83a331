// What a model is, as JSON.
#pragma once

#include <string>

#include "phasor/model.h"

namespace [[gnu::visibility("default")]] phasor {

/// An object with the groups and keys that `infer info --json` prints, but for what only an Encoder
/// knows. Parts that a model lacks are left out; "tokenizer" and "sentence" hold the "problem"
/// instead where the files have one.
std::string model_info(const Model& model);

}  // namespace phasor
