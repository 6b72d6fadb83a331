// The effect of positions on one sequence's attention scores in one layer: biases by offset, the
// terms of disentangled attention, a local window, a causal mask, and tokens that are no keys.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/positions/disentangled.h"
#include "engine/positions/offset_bias.h"

namespace phasor::internal {

/// A tile of scores, [num_keys, lanes]: lane i is query first_query + i.
struct ScoreTile {
  float* scores;
  int64_t lanes;
  int64_t first_query, num_queries;
  int64_t first_key = 0, num_keys = 0;
};

/// Borrowed; null where the run has no such positions. Offsets are rounded to whole numbers.
struct ScorePositions {
  std::span<const double> positions;  // [T]
  bool consecutive = true;            // p_t = p_0 + t
  float factor = 1.0f;                // of the biases and the disentangled terms
  const OffsetBias* bias = nullptr;
  const Disentangled* disentangled = nullptr;
  const RelativeRows* relative = nullptr;  // the layer's rows of `disentangled`
  int64_t window = 0;                      // see LayerAttention
  bool causal = false;                     // see ModelConfig; by the tokens' order, whatever p_t
  std::optional<int64_t> num_keys = {};    // see Segment

  int64_t num_tokens() const { return std::ssize(positions); }
  bool change_scores() const { return bias != nullptr || disentangled != nullptr || masks(); }
  bool masks() const { return window > 0 || causal || num_keys; }
  int64_t offset(int64_t query, int64_t key) const;  // p_key − p_query

  /// Sets the keys that some query of the tile sees, from an even one on.
  void choose_keys(ScoreTile& tile) const;
  /// Sets the scores of keys that a query does not see.
  void mask(const ScoreTile& tile, float value) const;
};

bool are_consecutive(std::span<const double> positions);

}  // namespace phasor::internal
