// Models in memory with lively random weights, for every choice that a ModelConfig can make.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "phasor/model.h"

namespace phasor {

struct RandomModelExtras {
  int64_t token_types = 0;  // rows of the token type table; 0: none
  bool mlm_head = false;    // decoder tied to the token embedding
  /// A classification head with these labels, pooling, activation and output; tensors are drawn.
  std::optional<ClassifierHead> classifier = {};
  bool classifier_norm = false;       // with a norm that has no bias
  float classifier_scale = 1;         // of what is drawn for its last map
  bool store_position_table = false;  // kSinusoidal: a (random) table that wins over the computed
  std::shared_ptr<const Tokenizer> tokenizer = nullptr;
  std::function<void(Weights&)> change = {};  // of what was drawn, as to take a bias away
};

/// The values of a tensor that was drawn, for RandomModelExtras::change.
inline std::span<float> drawn_values(const Tensor& tensor) {
  return {reinterpret_cast<float*>(const_cast<std::byte*>(tensor.data)),
          static_cast<size_t>(tensor.num_elements())};
}

/// The same model for the same arguments on every machine. Weights are float32; a position table
/// has max_positions + first_position rows. Matrices are scaled so that activations stay near 1,
/// norm weights lie in [0.5, 1.5], biases and positions are large enough to be missed.
std::shared_ptr<const Model> random_model(const ModelConfig& config, uint64_t seed,
                                          const RandomModelExtras& extras = {});

}  // namespace phasor
