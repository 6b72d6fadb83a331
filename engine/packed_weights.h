// The weights of a model in the fastest layout for this machine.
#pragma once

#include <cstdint>
#include <dnnl.hpp>
#include <optional>
#include <vector>

#include "engine/memory.h"
#include "engine/onednn.h"
#include "engine/positions/disentangled.h"
#include "engine/positions/offset_bias.h"
#include "engine/team.h"
#include "phasor/model.h"
#include "phasor/precision.h"
#include "phasor/run.h"

namespace phasor::internal {

/// A linear map in the precision of its matmul. Borrows from the arena.
struct PackedLinear {
  Precision precision;  // never kAuto
  int64_t in, out;
  dnnl::memory weight;  // [in, out], oneDNN's layout; empty if there are panels
  dnnl::memory bias;    // [1, out]
  /// For Kernels::linear, linear_bfloat16 and linear_int8. All that belongs to columns is filled up
  /// with zeros to whole panels.
  const std::byte* panels = nullptr;
  // int8 only: column o of the weight is column_scale[o] times the packed integers, whose sum is
  // column_sum[o].
  const float* column_scale = nullptr;  // [out]
  const int32_t* column_sum = nullptr;  // [out]
};

/// Of a weight in panels.
int64_t panel_value_bytes(Precision precision);

/// The matmul types of a precision.
onednn::MatmulTypes matmul_types(Precision precision);

/// Inputs in int8 are whole numbers from 0 to this one, 254 or 126, and for ties one more (see
/// Kernels::quantize): 8 bits, or 7 on machines whose dot products would otherwise overflow 16
/// bits.
int32_t most_int8_input();

/// The widest input of an int8 map: a sum of that many products of such numbers and −127 … 127 fits
/// into 32 bits for all values, and so does what the zero point takes from it.
int64_t max_int8_width();

/// The precision that `wanted` means for this model; kAuto avoids int8 if a map is too wide for it.
/// Throws InvalidArgument if int8 was requested and a map is wider than max_int8_width().
Precision precision_for(const ModelConfig& config, Precision wanted);

/// What `wanted` means on this machine.
KernelLibrary kernels_for(KernelLibrary wanted);

/// Limit on a model's packed weights, and on the activations of one run: 64 MiB and eight bytes for
/// each parameter.
int64_t affordable_bytes(const Model& model);
inline constexpr int64_t kAlwaysAffordable = int64_t{64} << 20;

/// PackedWeights::bytes(), before packing.
int64_t packed_bytes(const Model& model, const dnnl::engine& engine, Precision precision,
                     KernelLibrary kernels);

/// Throws ModelError if the model has none.
const ClassifierHead& classifier_of(const Model& model);
/// The same for tokens.
const ClassifierHead& token_classifier_of(const Model& model);

struct Norm {
  NormKind kind;
  std::vector<float> weight;  // [C]
  std::vector<float> bias;    // [C]; zeros if there is none
};

struct PackedBlock {
  PackedLinear qkv;                    // [C, (H + 2·G)·D]: q, k and v side by side
  std::optional<Norm> q_norm, k_norm;  // [D]; see ModelConfig::qk_norm
  RelativeRows relative;               // see Disentangled
  PackedLinear out;                    // [H·D, C]
  std::optional<Norm> attn_branch_norm, mlp_branch_norm;  // see ModelConfig::branch_norms
  std::optional<Norm> attn_norm;                          // see ModelConfig::first_attn_norm
  std::optional<PackedLinear> gate;                       // [C, F]
  PackedLinear up;                                        // [C, F]
  PackedLinear down;                                      // [F, C]
  Norm mlp_norm;
};

/// What turns states into scores or into other vectors.
enum class Head { kMlm, kClassifier, kTokenVectors };
inline constexpr size_t kNumHeads = 3;

/// Its maps, one after the other: y = f(W·LN(x) + b).
struct PackedHead {
  struct Map {
    std::optional<Norm> norm;
    PackedLinear linear;
    std::optional<Activation> activation;
  };
  Arena arena;
  std::vector<Map> maps;
};

/// Throws ModelError if there is none, a weight is NaN or infinite, or it would take more than
/// affordable_bytes() together with so many that are packed already.
PackedHead pack_head(Head which, const Model& model, const dnnl::engine& engine,
                     int64_t packed_already);

/// Immutable. Embeddings are not packed: they are read from the Model; nor are heads.
struct PackedWeights {
  /// Throws ModelError if a weight is NaN or infinite, because an activation may hide it from the
  /// result, and, before it takes memory, if that would be more than affordable_bytes(); and what
  /// precision_for() throws.
  PackedWeights(const Model& model, const dnnl::engine& engine, Precision precision,
                KernelLibrary kernels, const Threads& threads);
  /// Of matrices, biases and tables by offset.
  int64_t bytes() const;

  Precision precision;             // never kAuto
  KernelLibrary kernels;           // never kAuto
  Arena arena;                     // owns the memory of the blocks' matrices
  std::vector<float> token_types;  // [types, E]; empty if there are none
  std::optional<Norm> embedding_norm;
  std::optional<PackedLinear> embedding_map;  // [E, C]
  std::optional<OffsetBias> score_bias;
  std::optional<Disentangled> disentangled;
  std::vector<PackedBlock> blocks;  // [ModelConfig::num_blocks()]
  std::optional<Norm> final_norm;
};

}  // namespace phasor::internal
