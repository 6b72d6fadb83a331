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

void RelativeBias::add_to(float* scores, std::span<const double> positions, float factor) const {
  constexpr int64_t kBlock = 64;  // scores of a row whose distances are looked up for all heads
  const auto num_tokens = static_cast<int64_t>(positions.size());
  const auto furthest = static_cast<double>(max_distance_);
#pragma omp parallel for if (num_tokens > kBlock)
  for (int64_t i = 0; i < num_tokens; ++i) {
    for (int64_t first = 0; first < num_tokens; first += kBlock) {
      const int64_t count = std::min(kBlock, num_tokens - first);
      int32_t column[kBlock];  // of by_distance_
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) {
        const double distance = positions[first + j] - positions[i];
        column[j] = static_cast<int32_t>(std::clamp(distance, -furthest, furthest) + furthest);
      }
      for (int64_t h = 0; h < num_heads_; ++h) {
        const float* const bias = &by_distance_[h * (2 * max_distance_ + 1)];
        float* const row = scores + (h * num_tokens + i) * num_tokens + first;
#pragma omp simd
        for (int64_t j = 0; j < count; ++j) row[j] += factor * bias[column[j]];
      }
    }
  }
}

}  // namespace phasor
