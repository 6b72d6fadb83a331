// What a model is, as JSON: of `infer info` and of the C interface.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "phasor/model.h"

namespace phasor::internal {

/// Groups and keys as `infer info --json` prints them. What a model does not have is left out;
/// "tokenizer" and "sentence" hold the "problem" instead where the files have one.
nlohmann::ordered_json model_info(const Model& model);

}  // namespace phasor::internal
