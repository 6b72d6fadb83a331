// The members of phasor/model_info.h, with what an Encoder adds for `infer info`.
#pragma once

#include <optional>
#include <string>

#include "files/json_writer.h"
#include "phasor/model_info.h"

namespace phasor::internal {

/// The weights as a run packs them.
struct Packing {
  std::optional<int64_t> bytes = {};
  std::string problem = {};  // why the model cannot be run
};

/// The members of model_info() and, where it is given, of the packing.
void write_model_info(const Model& model, JsonWriter& json, const Packing& packing = {});

}  // namespace phasor::internal
