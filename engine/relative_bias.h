// Relative positions: a bias on the attention scores for each head and distance (Raffel et al.
// 2020, arXiv 1910.10683).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "phasor/config.h"

namespace phasor::internal {

/// Immutable.
class RelativeBias {
 public:
  /// `table` [num_buckets, H]: the checkpoint's bias for each bucket of distances.
  RelativeBias(const PositionConfig& config, std::span<const float> table);

  /// The biases of one head, indexed with a distance from −max_distance() to max_distance(); larger
  /// distances have the bias of the ends.
  const float* of_head(int64_t head) const {
    return &by_distance_[head * (2 * max_distance_ + 1) + max_distance_];
  }
  int64_t max_distance() const { return max_distance_; }

 private:
  int64_t max_distance_;
  std::vector<float> by_distance_;  // [H, 2·max_distance + 1], from −max_distance up
};

/// The bias of a run for a sequence at whole positions p [T]. Borrowed.
class PlacedBias {
 public:
  PlacedBias(const RelativeBias& bias, std::span<const double> positions, float factor)
      : bias_(bias), positions_(positions), factor_(factor) {}

  /// tile[j, i] += factor · bias[head, p_j − p_(first + i)], for a tile [T, lanes] of the queries
  /// from `first` on.
  void add_to(float* tile, int64_t head, int64_t first, int64_t num_queries, int64_t lanes) const;

 private:
  const RelativeBias& bias_;
  std::span<const double> positions_;
  float factor_;
};

}  // namespace phasor::internal
