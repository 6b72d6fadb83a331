// Token ids to hidden states: what an Encoder holds, and how it runs a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/batch.h"
#include "engine/forward.h"
#include "engine/output_heads.h"
#include "engine/packed_weights.h"
#include "engine/pool.h"
#include "engine/positions/position_source.h"
#include "engine/team.h"
#include "engine/workspace.h"
#include "phasor/run.h"

namespace phasor::internal {

/// Packed weights, threads and scratch memory. Any number of threads may use it at the same time.
class Runner {
 public:
  /// As Encoder's constructor.
  Runner(std::shared_ptr<const Model> model, const EncoderOptions& options);
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// The states of a batch. `window`: the longest window of Overflow::kWindow, in tokens; 0: as
  /// long as the positions reach. Throws what Encoder::encode_ids() throws.
  Encoding run(const TokenBatch& batch, const RunOptions& options, int64_t window = 0) const;
  /// The outputs [n, out] of a head, which is packed at its first use, for states [n, C].
  std::vector<float> run_head(Head head, std::span<const float> states) const;

  const Model& model() const { return *model_; }
  const PackedWeights& weights() const { return weights_; }
  int64_t packed_bytes() const { return weights_.bytes() + heads_.bytes(); }
  const Threads& threads() const { return threads_; }
  int num_threads() const { return threads_.count(); }

 private:
  void run_segments(const Run& run, const std::vector<Segment>& segments,
                    std::vector<PrimitiveInfo>* primitives, std::span<float> hidden) const;

  const std::shared_ptr<const Model> model_;
  const std::shared_ptr<Team> team_;
  const Threads threads_;
  const dnnl::engine engine_;
  const PackedWeights weights_;
  mutable OutputHeads heads_;
  mutable Pool<PositionTables> position_tables_;
  mutable Pool<Workspace> workspaces_;
};

}  // namespace phasor::internal
