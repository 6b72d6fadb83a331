// The forward pass over one group of sequences.
#pragma once

#include <stop_token>
#include <vector>

#include "engine/batch.h"
#include "engine/packed_weights.h"
#include "engine/positions/position_source.h"
#include "engine/watch.h"
#include "engine/workspace.h"
#include "phasor/run.h"

namespace phasor::internal {

/// Data shared by all groups of a run. Borrowed.
struct Run {
  const Model& model;
  const PackedWeights& weights;
  const PositionSource& positions;
  const Watch& watch;
  const std::vector<ResidualCut>& cuts;
  int64_t first_block;
  const std::stop_token& stop;
};

/// Runs a prepared group through the encoder. Throws Error with kCancelled if a stop was requested
/// before a block. Returns the last hidden state, [N, C], in the workspace's scratch memory.
const float* forward(const Run& run, const Group& group, Workspace& workspace);

}  // namespace phasor::internal
