// The masked-language-model head: from hidden states to scores over the vocabulary.
#pragma once

#include <span>
#include <vector>

#include "engine/packed_weights.h"
#include "engine/scratch.h"
#include "phasor/model.h"

namespace phasor::internal {

/// Belongs to one thread at a time.
class MlmScorer {
 public:
  /// Borrows the head from `weights`. Throws as PackedWeights::mlm_head().
  MlmScorer(const Model& model, const dnnl::engine& engine, const PackedWeights& weights);

  /// hidden [n, C] -> logits [n, V]. Throws InvalidArgument if hidden is not a whole number of
  /// rows.
  std::vector<float> logits(std::span<const float> hidden);

 private:
  ModelConfig config_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  const PackedMlmHead& head_;
  ScratchBuffer scratchpad_;
};

}  // namespace phasor::internal
