#include "engine/positions/offset_bias.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "engine/kernels/kernels.h"
#include "engine/positions/score_positions.h"

namespace phasor::internal {
namespace {

/// T5's bucket of an offset. In float32 like the source, whose rounding determines where a bucket
/// ends.
int64_t bucket_of(int64_t offset, const PositionConfig& config) {
  const int64_t side = config.num_buckets / 2;
  const int64_t exact = side / 2;
  const int64_t first = offset > 0 ? side : 0;
  const int64_t length = std::abs(offset);
  if (length < exact) return first + length;
  const float position = std::log(static_cast<float>(length) / static_cast<float>(exact)) /
                         static_cast<float>(std::log(static_cast<double>(config.max_distance) /
                                                     static_cast<double>(exact))) *
                         static_cast<float>(side - exact);
  return first + std::min(exact + static_cast<int64_t>(position), side - 1);
}

/// ALiBi's: 2^(−8/n), 2^(−16/n), … for the largest power of two n ≤ H; the remaining heads take
/// every second one of the slopes for 2n.
std::vector<float> alibi_slopes(int64_t num_heads) {
  const auto n = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(num_heads)));
  std::vector<float> slopes;
  for (int64_t h = 0; h < num_heads; ++h) {
    const double power = h < n ? static_cast<double>(h + 1) / static_cast<double>(n)
                               : static_cast<double>(2 * (h - n) + 1) / static_cast<double>(2 * n);
    slopes.push_back(static_cast<float>(std::exp2(-8 * power)));
  }
  return slopes;
}

}  // namespace

OffsetBias OffsetBias::alibi(int64_t num_heads) {
  OffsetBias bias;
  bias.slopes_ = alibi_slopes(num_heads);
  return bias;
}

int64_t OffsetBias::bytes(const ModelConfig& config) {
  const bool buckets = config.position.bias == ScoreBias::kBuckets;
  const int64_t offsets = buckets ? 2 * config.position.max_distance + 1 : 1;
  return config.num_heads * offsets * int64_t{sizeof(float)};
}

OffsetBias::OffsetBias(const ModelConfig& config, std::span<const float> table) {
  const PositionConfig& position = config.position;
  if (position.bias == ScoreBias::kAlibi) {
    slopes_ = alibi_slopes(config.num_heads);
    return;
  }
  max_offset_ = position.max_distance;
  by_offset_.reserve(config.num_heads * (2 * max_offset_ + 1));
  for (int64_t h = 0; h < config.num_heads; ++h) {
    for (int64_t offset = -max_offset_; offset <= max_offset_; ++offset) {
      by_offset_.push_back(table[bucket_of(offset, position) * config.num_heads + h]);
    }
  }
}

float OffsetBias::at(int64_t head, int64_t offset) const {
  if (!slopes_.empty()) return -slopes_[head] * static_cast<float>(std::abs(offset));
  const int64_t known = std::clamp(offset, -max_offset_, max_offset_);
  return by_offset_[head * (2 * max_offset_ + 1) + max_offset_ + known];
}

// scratch[k] is the bias of offset T − 1 − k, so that a tile's lanes, which are queries, read
// upwards.
void OffsetBias::begin_head(const ScorePositions& of, int64_t head, float* scratch) const {
  if (!of.consecutive) return;
  const int64_t T = of.num_tokens();
  for (int64_t offset = T - 1; offset > -T; --offset) *scratch++ = of.factor * at(head, offset);
}

void OffsetBias::add_to(const ScoreTile& tile, const ScorePositions& of, int64_t head,
                        const float* scratch) const {
  if (of.consecutive) {
    kernels().add_by_offset(tile.scores, tile.num_keys,
                            scratch + of.num_tokens() - 1 - tile.first_key + tile.first_query);
    return;
  }
  for (int64_t j = 0; j < tile.num_keys; ++j) {
    for (int64_t i = 0; i < tile.num_queries; ++i) {
      tile.scores[j * tile.lanes + i] +=
          of.factor * at(head, of.offset(tile.first_query + i, tile.first_key + j));
    }
  }
}

}  // namespace phasor::internal
