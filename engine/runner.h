// Token ids to hidden states: what an Encoder holds, and how it runs a batch.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/batch.h"
#include "engine/forward.h"
#include "engine/output_heads.h"
#include "engine/packed_weights.h"
#include "engine/positions/position_source.h"
#include "engine/team.h"
#include "engine/workspace.h"
#include "phasor/run.h"

namespace phasor::internal {

/// Packed weights, threads and scratch memory. Belongs to one call at a time.
class Runner {
 public:
  /// As Encoder's constructor.
  Runner(std::shared_ptr<const Model> model, const EncoderOptions& options);
  /// Over the same weights, with threads and scratch memory of its own.
  Runner(const Runner& other);
  Runner& operator=(const Runner&) = delete;

  /// The states of a batch. `window`: the longest window of Overflow::kWindow, in tokens; 0: as
  /// long as the positions reach. Throws what Encoder::encode_ids() throws.
  Encoding run(const TokenBatch& batch, const RunOptions& options, int64_t window = 0);
  /// The outputs [n, out] of a head, which is packed at its first use, for states [n, C].
  std::vector<float> run_head(Head head, std::span<const float> states);
  /// Those of the last run.
  std::vector<PrimitiveInfo> primitives() const;

  const Model& model() const { return *model_; }
  const PackedWeights& weights() const { return *weights_; }
  Threads threads() { return Threads(team_); }
  int num_threads() const { return team_.size(); }

 private:
  void make_workspaces();
  void run_segments(const Run& run, const std::vector<Segment>& segments, std::span<float> hidden);

  std::shared_ptr<const Model> model_;
  std::shared_ptr<Executor> executor_;
  Team team_;
  int max_plans_;
  dnnl::engine engine_;
  std::shared_ptr<const PackedWeights> weights_;
  PositionTables position_tables_;
  std::vector<Workspace> workspaces_;  // [team_.size()]
  int last_workspace_ = 0;             // ran the first group of the last run
  std::array<std::unique_ptr<HeadRunner>, kNumHeads> heads_;
};

}  // namespace phasor::internal
