// The heads on top of the encoder: from states to scores over the vocabulary or over labels, or to
// vectors.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "engine/packed_weights.h"
#include "phasor/model.h"

namespace phasor::internal {

/// A model's heads, each packed when it is first asked for, because few runs need one. Thread-safe.
class OutputHeads {
 public:
  OutputHeads() = default;
  ~OutputHeads();
  OutputHeads(const OutputHeads&) = delete;
  OutputHeads& operator=(const OutputHeads&) = delete;

  /// Throws, in every call, what pack_head() throws.
  const PackedHead& get(Head which, const Model& model, const dnnl::engine& engine,
                        const PackedWeights& beside);
  /// Of those that are packed.
  int64_t bytes() const;

 private:
  std::mutex mutex_;  // of who packs
  std::array<std::atomic<const PackedHead*>, kNumHeads> heads_ = {};
};

/// states [n, C] -> [n, out] of the head's last map. Throws InvalidArgument if `states` is not a
/// whole number of rows.
std::vector<float> run_head(const PackedHead& head, const ModelConfig& config,
                            const dnnl::engine& engine, const Threads& threads,
                            std::span<const float> states);

/// Logits [n, labels] as ClassifierHead::output says.
std::vector<float> probabilities(std::span<const float> logits, int64_t num_labels,
                                 ClassifierHead::Output output);

}  // namespace phasor::internal
