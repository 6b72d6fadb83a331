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
  tile.num_keys = num_tokens();
  if (window == 0 || !consecutive) return;
  tile.first_key = std::max<int64_t>(0, tile.first_query - window) / 2 * 2;
  tile.num_keys =
      std::min(num_tokens(), tile.first_query + tile.num_queries + window) - tile.first_key;
}

void ScorePositions::mask(const ScoreTile& tile, float value) const {
  if (window == 0) return;
  const int64_t last_query = tile.first_query + tile.num_queries - 1;
  for (int64_t j = 0; j < tile.num_keys; ++j) {
    const int64_t key = tile.first_key + j;
    if (consecutive && key >= last_query - window && key <= tile.first_query + window) continue;
    for (int64_t i = 0; i < tile.num_queries; ++i) {
      const double distance = consecutive ? static_cast<double>(key - tile.first_query - i)
                                          : positions[key] - positions[tile.first_query + i];
      if (std::abs(distance) > static_cast<double>(window)) {
        tile.scores[j * tile.lanes + i] = value;
      }
    }
  }
}

}  // namespace phasor::internal
