// The weights of a model in the layout in which this machine multiplies fastest.
#pragma once

#include <cstdint>
#include <dnnl.hpp>
#include <optional>
#include <vector>

#include "phasor/model.h"

namespace phasor {

struct PackedLinear {
  dnnl::memory weight;  // [in, out], oneDNN's layout
  dnnl::memory bias;    // [1, out]
};

struct Norm {
  std::vector<float> weight;  // [C]
  std::vector<float> bias;    // [C]
};

struct PackedBlock {
  PackedLinear q, k, v, out;  // [C, C]
  Norm attn_norm;
  PackedLinear up;    // [C, F]
  PackedLinear down;  // [F, C]
  Norm mlp_norm;
};

struct PackedMlmHead {
  Activation activation;
  PackedLinear dense;  // [C, C]
  Norm norm;
  PackedLinear decoder;  // [C, V]
};

/// Immutable; shared by an Encoder and its replicas. Embeddings stay where the Model has them.
struct PackedWeights {
  /// Throws ModelError where a weight is NaN or infinite: an activation may hide it from the
  /// result.
  PackedWeights(const Model& model, const dnnl::engine& engine);

  std::vector<float> token_type_row;  // [C]; empty where there are no types
  std::optional<Norm> embedding_norm;
  std::vector<PackedBlock> blocks;  // [L]
  std::optional<Norm> final_norm;
};

/// Packed by itself, since few runs ask for scores over the vocabulary.
PackedMlmHead pack_mlm_head(const Model& model, const dnnl::engine& engine);

}  // namespace phasor
