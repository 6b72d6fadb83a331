#include "engine/positions/score_positions.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace phasor::internal {

bool are_consecutive(std::span<const double> positions) {
  double next = positions.empty() ? 0 : positions.front();
  return std::ranges::all_of(positions, [&](double p) { return p == next++; });
}

int64_t ScorePositions::offset(int64_t query, int64_t key) const {
  return consecutive ? key - query : std::llround(positions[key] - positions[query]);
}

void ScorePositions::choose_keys(ScoreTile& tile) const {
  tile.first_key = 0;
  const int64_t end_query = tile.first_query + tile.num_queries;
  int64_t end = std::min(causal ? end_query : num_tokens(), num_keys.value_or(num_tokens()));
  if (window > 0 && consecutive) {
    tile.first_key = std::max<int64_t>(0, tile.first_query - window) / 2 * 2;
    end = std::min(end, end_query + window);
  }
  tile.first_key = std::min(tile.first_key, end / 2 * 2);
  tile.num_keys = end - tile.first_key;
}

void ScorePositions::mask(const ScoreTile& tile, float value) const {
  if (!masks()) return;
  const int64_t last_query = tile.first_query + tile.num_queries - 1;
  const auto is_far = [&](int64_t query, int64_t key) {
    const double distance =
        consecutive ? static_cast<double>(key - query) : positions[key] - positions[query];
    return window > 0 && std::abs(distance) > static_cast<double>(window);
  };
  for (int64_t j = 0; j < tile.num_keys; ++j) {
    const int64_t key = tile.first_key + j;
    const bool near = window == 0 || (consecutive && key >= last_query - window &&
                                      key <= tile.first_query + window);
    const bool is_key = key < num_keys.value_or(num_tokens());
    if (near && is_key && (!causal || key <= tile.first_query)) continue;
    for (int64_t i = 0; i < tile.num_queries; ++i) {
      const int64_t query = tile.first_query + i;
      if (!is_key || (causal && key > query) || is_far(query, key))
        tile.scores[j * tile.lanes + i] = value;
    }
  }
}

}  // namespace phasor::internal
