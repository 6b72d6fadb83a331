// The heads on top of the encoder: from states to scores over the vocabulary or over labels, or to
// vectors.
#pragma once

#include <span>
#include <vector>

#include "engine/memory.h"
#include "engine/packed_weights.h"
#include "phasor/model.h"

namespace phasor::internal {

/// Runs a head. Belongs to one thread at a time.
class HeadRunner {
 public:
  /// Borrows the head.
  HeadRunner(const ModelConfig& config, const dnnl::engine& engine, const PackedHead& head);

  /// states [n, C] -> [n, out] of the last map. Throws InvalidArgument if `states` is not a whole
  /// number of rows.
  std::vector<float> run(const Threads& threads, std::span<const float> states);

 private:
  int64_t d_model_;
  float norm_eps_;
  dnnl::engine engine_;
  const PackedHead& head_;
  ScratchBuffer scratchpad_;
};

/// Logits [n, labels] as ClassifierHead::output says.
std::vector<float> probabilities(std::span<const float> logits, int64_t num_labels,
                                 ClassifierHead::Output output);

}  // namespace phasor::internal
