// T5's buckets, expanded to a bias for every distance up to the one from which all are equal.
#include "engine/relative_bias.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace phasor::internal {
namespace {

// In float32 like the source, whose rounding determines where a bucket ends.
int64_t bucket_of(int64_t distance, const PositionConfig& config) {
  const int64_t side = config.num_buckets / 2;
  const int64_t exact = side / 2;
  const int64_t first = distance > 0 ? side : 0;
  const int64_t length = std::abs(distance);
  if (length < exact) return first + length;
  const float position = std::log(static_cast<float>(length) / static_cast<float>(exact)) /
                         static_cast<float>(std::log(static_cast<double>(config.max_distance) /
                                                     static_cast<double>(exact))) *
                         static_cast<float>(side - exact);
  return first + std::min(exact + static_cast<int64_t>(position), side - 1);
}

}  // namespace

RelativeBias::RelativeBias(const PositionConfig& config, std::span<const float> table)
    : max_distance_(config.max_distance) {
  const int64_t num_heads = static_cast<int64_t>(table.size()) / config.num_buckets;
  for (int64_t h = 0; h < num_heads; ++h) {
    for (int64_t d = -max_distance_; d <= max_distance_; ++d) {
      by_distance_.push_back(table[bucket_of(d, config) * num_heads + h]);
    }
  }
}

void PlacedBias::add_to(float* tile, int64_t head, int64_t first, int64_t num_queries,
                        int64_t lanes) const {
  const float* const by_distance = bias_.of_head(head);
  const auto furthest = static_cast<double>(bias_.max_distance());
  for (const double key : positions_) {
    for (int64_t i = 0; i < num_queries; ++i) {
      const double distance = std::clamp(key - positions_[first + i], -furthest, furthest);
      tile[i] += factor_ * by_distance[static_cast<int64_t>(distance)];
    }
    tile += lanes;
  }
}

}  // namespace phasor::internal
