// The description of a model as JSON, for `infer info` and the C interface.
#pragma once

#include <optional>
#include <string>

#include "files/json_writer.h"
#include "phasor/model.h"

namespace phasor::internal {

/// The weights as a run packs them.
struct Packing {
  std::optional<int64_t> bytes = {};
  std::string problem = {};  // why the model cannot be run
};

/// The members with the groups and keys that `infer info --json` prints. Parts that a model lacks
/// are left out; "tokenizer" and "sentence" hold the "problem" instead where the files have one.
void write_model_info(const Model& model, JsonWriter& json, const Packing& packing = {});

/// An object of these.
std::string model_info(const Model& model);

}  // namespace phasor::internal
