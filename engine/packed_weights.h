// The weights of a model in the layout in which this machine multiplies fastest.
#pragma once

#include <cstdint>
#include <dnnl.hpp>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/arena.h"
#include "engine/onednn.h"
#include "engine/relative_bias.h"
#include "phasor/model.h"
#include "phasor/precision.h"

namespace phasor::internal {

/// A linear map in the precision that its matmul works in. Borrows from the arena.
struct PackedLinear {
  Precision precision;  // never kAuto
  dnnl::memory weight;  // [in, out], oneDNN's layout
  dnnl::memory bias;    // [1, out]
  // int8 alone: column o of the weight is column_scale[o] times the packed whole numbers, and
  // zero_point[o] is their sum times int8_levels().
  const float* column_scale = nullptr;  // [out]
  const int32_t* zero_point = nullptr;  // [out]
};

/// What oneDNN multiplies in a precision.
onednn::MatmulTypes matmul_types(Precision precision);

/// Activations in int8 are whole numbers 0 … 2·levels: 8 bits, or 7 on machines whose dot products
/// would overflow 16 bits on the way.
int32_t int8_levels();

/// The widest input of an int8 map. A sum of so many products of 0 … 2·levels and −127 … 127, and
/// what is taken off it for the zero point, fit into 32 bits whatever the values are.
int64_t max_int8_width();

/// What `wanted` means for such a model; kAuto leaves int8 aside where a map is too wide for it.
/// Throws InvalidArgument where int8 was asked for and a map is wider than max_int8_width().
Precision precision_for(const ModelConfig& config, Precision wanted);

struct Norm {
  NormKind kind;
  std::vector<float> weight;  // [C]
  std::vector<float> bias;    // [C]; zeros in an RMS norm
};

struct PackedBlock {
  PackedLinear qkv;  // [C, 3·H·D]: q, k and v side by side
  PackedLinear out;  // [H·D, C]
  Norm attn_norm;
  std::optional<PackedLinear> gate;  // [C, F]
  PackedLinear up;                   // [C, F]
  PackedLinear down;                 // [F, C]
  Norm mlp_norm;
};

struct PackedMlmHead {
  Arena arena;
  Activation activation;
  PackedLinear dense;  // [C, E]
  Norm norm;
  PackedLinear decoder;  // [E, V]
};

/// Shared by an Encoder and its replicas; immutable but for the head, which comes on first use.
/// Embeddings stay where the Model has them.
struct PackedWeights {
  /// Throws ModelError where a weight is NaN or infinite: an activation may hide it from the
  /// result; and as precision_for().
  PackedWeights(const Model& model, const dnnl::engine& engine, Precision precision);
  int64_t bytes() const;  // of matrices and biases, and of the head's once it is packed

  /// The model's head, packed by the first who asks, since few runs want scores over the
  /// vocabulary. For any number of threads. Throws ModelError where there is none or where a weight
  /// is NaN or infinite, every time.
  const PackedMlmHead& mlm_head(const Model& model, const dnnl::engine& engine) const;

  Precision precision;                // never kAuto
  Arena arena;                        // has what the blocks' matrices borrow
  std::vector<float> token_type_row;  // [E]; empty where there are no types
  std::optional<Norm> embedding_norm;
  std::optional<PackedLinear> embedding_map;  // [E, C]
  std::optional<RelativeBias> relative_bias;
  std::vector<PackedBlock> blocks;  // [ModelConfig::num_blocks()]
  std::optional<Norm> final_norm;

 private:
  mutable std::mutex head_mutex_;
  mutable std::optional<PackedMlmHead> head_;
};

}  // namespace phasor::internal
