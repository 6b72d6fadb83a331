// The steps and the memory for running a group of sequences.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "engine/attention.h"
#include "engine/batch.h"
#include "engine/memory.h"
#include "engine/positions/rotary.h"
#include "engine/steps.h"
#include "engine/watch.h"
#include "phasor/config.h"

namespace phasor::internal {

/// The activations of a group. Every buffer is row-major; the last rows may belong to no token.
struct Activations {
  int64_t num_rows;    // N
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
  explicit Workspace(std::unique_ptr<Steps> steps) : steps_(std::move(steps)) {}

  /// Prepares the steps for `group`, and allocates its memory.
  void prepare(const Threads& threads, const Group& group, const ModelConfig& config,
               const Rotation* rotation, const Watch& watch);

  const Threads& threads() const { return threads_; }
  Steps& steps() const { return *steps_; }
  const Activations& activations() const { return activations_; }

 private:
  std::unique_ptr<Steps> steps_;
  Threads threads_;
  ScratchBuffer buffer_;
  Activations activations_ = {};
};

}  // namespace phasor::internal
