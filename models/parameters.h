// The tensors of an encoder with a given configuration, their shapes, and where a checkpoint has
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "files/files.h"
#include "models/model_config.h"
#include "models/tensor_files.h"
#include "phasor/model.h"

namespace phasor::internal {

/// One tensor of Weights. The name is `module` + "." + `leaf`: "blocks.{l}.attn.q" + "." + "bias".
struct Parameter {
  std::string_view module;     // phasor's own name, with {l} for the layer
  std::string_view leaf;       // "weight" or "bias"
  int64_t layer = -1;          // the block's number; −1 outside blocks
  std::vector<int64_t> shape;  // kAnyRows: any number of rows from 1 up
  bool required = true;
  Tensor* tensor = nullptr;

  std::string name() const;  // "blocks.3.attn.q.bias"
};

/// Replaces {l} by `layer`.
std::string with_layer(std::string_view pattern, int64_t layer);

/// Every tensor that `config` and the heads in `weights` have, in the order of the forward pass.
/// Resizes weights.blocks to config.num_layers.
std::vector<Parameter> parameters(const ModelConfig& config, Weights& weights);

/// Whether a tensor of this shape fits `parameter`.
bool shape_fits(const Parameter& parameter, const std::vector<int64_t>& shape);

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
