// Positions as a bias on the attention scores: one number for each head and offset j − i.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "phasor/config.h"

namespace phasor::internal {

/// The biases of a model. Immutable.
class OffsetBias {
 public:
  /// `table` [num_buckets, H]: the checkpoint's, for ScoreBias::kBuckets.
  OffsetBias(const ModelConfig& config, std::span<const float> table);

  float at(int64_t head, int64_t offset) const;

 private:
  int64_t max_offset_;            // of by_offset_; those beyond have the bias of its ends
  std::vector<float> by_offset_;  // [H, 2·max_offset + 1], from −max_offset up
  std::vector<float> slopes_;     // [H]; empty: none
};

/// The bias of a run for a sequence at positions p [T], whose offsets are rounded. Borrowed.
class PlacedBias {
 public:
  PlacedBias(const OffsetBias& bias, std::span<const double> positions, float factor);

  /// Floats of scratch memory for num_tokens tokens and tiles of so many lanes.
  static int64_t scratch(int64_t num_tokens, int64_t lanes) { return 2 * num_tokens + lanes; }
  /// Prepares a head, before its tiles.
  void begin_head(int64_t head, float* scratch) const;
  /// tile[j, i] += factor · bias[head, p_j − p_(first + i)], for a tile [T, lanes] of the queries
  /// from `first` on.
  void add_to(float* tile, int64_t head, int64_t first, int64_t num_queries, int64_t lanes,
              const float* scratch) const;

 private:
  const OffsetBias& bias_;
  std::span<const double> positions_;
  float factor_;
  bool consecutive_;  // p_t = p_0 + t: then a row of biases serves all queries
};

}  // namespace phasor::internal
