// Compiled plans and scratch memory for running a group of sequences.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/attention.h"
#include "engine/batch.h"
#include "engine/linear.h"
#include "engine/lru_cache.h"
#include "engine/positions/rotary.h"
#include "engine/scratch.h"
#include "engine/watch.h"
#include "phasor/config.h"
#include "phasor/encoder.h"

namespace phasor::internal {

/// The linear maps of the embedding and of a block, compiled for N rows.
struct RowPlan {
  RowPlan(const dnnl::engine& engine, int64_t num_rows, const PackedWeights& weights, int threads);

  size_t scratchpad_bytes() const;

  std::optional<Linear> embedding_map;  // [N, E] -> [N, C]
  Linear qkv;                           // [N, C] -> [N, 3·H·D]
  Linear merge;                         // [N, H·D] -> [N, C]: the heads' outputs
  Linear up;                            // [N, C] -> [N, F], and the gate of a gated MLP
  Linear down;                          // [N, F] -> [N, C]
};

/// The activations of a group. Every buffer is row-major; the last rows may belong to no token.
struct Activations {
  float* x;            // [N, C] the residual stream; [N, E] until the embedding map
  float* normed;       // [N, C] x after a norm
  float* qkv;          // [N, 3, H, D], overwritten by the MLP
  float* z;            // [N, H, D] the heads' outputs
  float* out;          // [N, C] the output of attention or the MLP
  float* mlp;          // [N, F], in the memory of qkv
  float* gate;         // [N, F] in a gated MLP
  float* rotation;     // [tables, N, row_size] of the run's Rotation
  float* attention;    // attention_scratch() for each thread
  AttentionMaps maps;  // of one segment at a time
};

/// Floats of activations for each token of a long sequence, run by so many threads; hooks may ask
/// for more.
int64_t floats_per_token(const ModelConfig& config, int threads);

/// Belongs to one run at a time.
class Workspace {
 public:
  /// Keeps `max_plans` compiled plans, the most recently used.
  Workspace(const dnnl::engine& engine, size_t max_plans)
      : engine_(engine), row_plans_(max_plans) {}

  /// Compiles the plan of `group` for these threads, and allocates its memory: after this the
  /// forward pass allocates and creates nothing.
  void prepare(const Threads& threads, const Group& group, const ModelConfig& config,
               const PackedWeights& weights, const Rotation* rotation, const Watch& watch);

  const Threads& threads() const { return threads_; }
  RowPlan& rows() { return *rows_; }
  const Activations& activations() const { return activations_; }
  /// The implementations compiled for the group.
  std::vector<PrimitiveInfo> primitives() const;
  void* scratchpad() { return scratchpad_.data(); }

 private:
  void make_room(const Group& group, const ModelConfig& config, const Rotation* rotation,
                 const Watch& watch);

  dnnl::engine engine_;
  Threads threads_;
  struct PlanKey {
    int64_t num_rows;
    int threads;
    bool operator==(const PlanKey&) const = default;
  };
  LruCache<PlanKey, RowPlan> row_plans_;
  std::shared_ptr<RowPlan> rows_;
  ScratchBuffer buffer_;
  ScratchBuffer scratchpad_;
  Activations activations_ = {};
};

}  // namespace phasor::internal
