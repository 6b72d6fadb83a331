// A checkpoint's tensors, found under its family's names and checked against its configuration.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/model_config.h"
#include "models/tensor_files.h"
#include "phasor/model.h"

namespace phasor::internal {

struct BoundWeights {
  Weights weights;  // borrowed from the files, and from `computed`
  std::shared_ptr<const void> computed;
  std::vector<std::string> unused;  // names of the files' other tensors
  std::vector<std::string> notes;   // see Model::notes()
};

/// Throws ModelError naming a tensor that is missing, or whose shape differs from the
/// configuration, or whose dtype phasor does not read.
BoundWeights bind_weights(const TensorFiles& files, const CheckpointConfig& checkpoint);

/// A sentence if the stored table of a sinusoidal model differs by more than 1e-4 (and its dtype's
/// rounding) from its family's formula; otherwise empty.
std::string compare_with_formula(const ModelConfig& config, const Tensor& position_table);

}  // namespace phasor::internal
