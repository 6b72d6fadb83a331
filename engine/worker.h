// What one thread needs to take a group of sequences through the network: compiled plans and
// scratch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/attention.h"
#include "engine/batch.h"
#include "engine/linear.h"
#include "engine/lru_cache.h"
#include "engine/scratch.h"
#include "phasor/config.h"
#include "phasor/encoder.h"

namespace phasor {

/// The linear maps of the embedding and of a block, compiled for N rows.
struct RowPlan {
  RowPlan(const dnnl::engine& engine, int64_t num_rows, const ModelConfig& config,
          const PackedWeights& weights);

  size_t scratchpad_bytes() const;

  std::optional<Linear> embedding_map;  // [N, E] -> [N, C]
  Linear project;                       // [N, C] -> [N, H·D]: q, k, v
  Linear merge;                         // [N, H·D] -> [N, C]: the heads' outputs
  Linear up;                            // [N, C] -> [N, F], with the activation
  Linear down;                          // [N, F] -> [N, C]
  /// `up` in two steps, for an observer of what comes before the activation, and its first step for
  /// a gated MLP.
  Linear up_linear;
  onednn::Primitive activate;
};

/// The activations of a group. Every buffer is row-major and as long as the group needs.
struct Activations {
  float* x;       // [N, C] the residual stream; [N, E] until the embedding map
  float* normed;  // [N, C] x after a norm
  float* q;       // [N, H, D]
  float* k;       // [N, H, D]
  float* v;       // [N, H, D]
  float* z;       // [N, H, D] the heads' outputs
  float* out;     // [N, C] what attention or the MLP adds to the residual stream
  float* mlp;     // [N, F]
  float* gate;    // [N, F] in a gated MLP
  float* scores;  // [H, T, T] of one segment at a time
};

/// Belongs to one thread at a time.
class Worker {
 public:
  explicit Worker(const dnnl::engine& engine) : engine_(engine), stream_(engine) {}

  /// Compiles what `group` needs, for the calling thread's team size, and makes room for it: after
  /// this the forward pass allocates and creates nothing.
  void prepare(const Group& group, const ModelConfig& config, const PackedWeights& weights);

  const dnnl::stream& stream() const { return stream_; }
  RowPlan& rows() { return *rows_; }
  Attention& attention(size_t segment) { return *attention_[segment]; }
  const Activations& activations() const { return activations_; }
  /// What the group was compiled to; of its attention, that of its first sequence.
  std::vector<PrimitiveInfo> primitives() const;
  void* scratchpad() { return scratchpad_.data(); }

 private:
  // More plans than this are compiled anew, at 0.3 ms each the first time and 2 µs later.
  static constexpr size_t kRowPlans = 16;
  static constexpr size_t kAttentionPlans = 64;

  dnnl::engine engine_;
  dnnl::stream stream_;
  struct PlanKey {
    int64_t size;   // N or T
    int team_size;  // oneDNN splits the work when it compiles
    bool operator==(const PlanKey&) const = default;
  };
  LruCache<PlanKey, RowPlan> row_plans_{kRowPlans};
  LruCache<PlanKey, Attention> attention_plans_{kAttentionPlans};
  std::shared_ptr<RowPlan> rows_;
  std::vector<std::shared_ptr<Attention>> attention_;  // of each segment
  ScratchBuffer buffer_;
  ScratchBuffer scratchpad_;
  Activations activations_ = {};
};

}  // namespace phasor
