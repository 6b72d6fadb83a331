// T5's buckets, unrolled into a bias for every distance up to the one from which all are alike.

#include "engine/relative_bias.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace phasor {
namespace {

// In float32 like the source, whose rounding decides where a bucket ends.
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
    : max_distance_(config.max_distance),
      num_heads_(static_cast<int64_t>(table.size()) / config.num_buckets) {
  for (int64_t h = 0; h < num_heads_; ++h) {
    for (int64_t d = -max_distance_; d <= max_distance_; ++d) {
      by_distance_.push_back(table[bucket_of(d, config) * num_heads_ + h]);
    }
  }
}

void RelativeBias::write(std::span<const double> positions, float factor, float* out) const {
  for (int64_t h = 0; h < num_heads_; ++h) {
    const float* const bias = &by_distance_[h * (2 * max_distance_ + 1)];
    for (const double from : positions) {
      for (const double to : positions) {
        const auto distance = static_cast<int64_t>(to - from);
        *out++ = factor * bias[std::clamp(distance, -max_distance_, max_distance_) + max_distance_];
      }
    }
  }
}

}  // namespace phasor
