// Positions as a bias on the attention scores: one number for each head and offset j − i.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "phasor/config.h"

namespace phasor::internal {

struct ScorePositions;
struct ScoreTile;

/// The biases of a model. Immutable.
class OffsetBias {
 public:
  /// `table` [num_buckets, H]: the checkpoint's, for ScoreBias::kBuckets.
  OffsetBias(const ModelConfig& config, std::span<const float> table);
  static OffsetBias alibi(int64_t num_heads);

  int64_t bytes() const {
    return (std::ssize(by_offset_) + std::ssize(slopes_)) * int64_t{sizeof(float)};
  }
  static int64_t bytes(const ModelConfig& config);

  float at(int64_t head, int64_t offset) const;

  /// Floats of scratch memory for num_tokens tokens and tiles of so many lanes.
  static int64_t scratch(int64_t num_tokens, int64_t lanes) { return 2 * num_tokens + lanes; }
  /// Prepares a head, before its tiles.
  void begin_head(const ScorePositions& of, int64_t head, float* scratch) const;
  /// tile[j, i] += factor · bias[head, p_j − p_i].
  void add_to(const ScoreTile& tile, const ScorePositions& of, int64_t head,
              const float* scratch) const;

 private:
  OffsetBias() = default;

  int64_t max_offset_ = 0;        // of by_offset_; those beyond have the bias of its ends
  std::vector<float> by_offset_;  // [H, 2·max_offset + 1], from −max_offset up
  std::vector<float> slopes_;     // [H]; empty: none
};

}  // namespace phasor::internal
