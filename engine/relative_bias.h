// Relative positions: a bias on the attention scores for each head and distance (Raffel et al.
// 2020, arXiv 1910.10683).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "phasor/config.h"

namespace phasor {

/// Immutable once made.
class RelativeBias {
 public:
  /// `table` [num_buckets, H]: what the checkpoint holds for each bucket of distances.
  RelativeBias(const PositionConfig& config, std::span<const float> table);

  /// scores[h, i, j] += factor · bias[h, p_j − p_i], for scores [H, T, T] and whole positions p
  /// [T].
  void add_to(float* scores, std::span<const double> positions, float factor) const;

 private:
  int64_t max_distance_;
  int64_t num_heads_;
  std::vector<float> by_distance_;  // [H, 2·max_distance + 1], from −max_distance up
};

}  // namespace phasor
