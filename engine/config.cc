// Checks of a ModelConfig.

#include "phasor/config.h"

#include <fmt/format.h>

#include <cmath>

#include "phasor/errors.h"

namespace phasor {
namespace {

void require_positive(std::string_view name, int64_t value) {
  if (value < 1) throw InvalidArgument(fmt::format("{} is {}; it must be at least 1", name, value));
}

void require_not_negative(std::string_view name, int64_t value) {
  if (value < 0) throw InvalidArgument(fmt::format("{} is {}; it must be at least 0", name, value));
}

/// Half of the buckets are for either side; half of those hold one distance each.
void validate_buckets(const PositionConfig& position) {
  if (position.num_buckets < 4 || position.num_buckets % 4 != 0) {
    throw InvalidArgument(
        fmt::format("num_buckets is {}; it must be a multiple of 4", position.num_buckets));
  }
  if (position.max_distance <= position.num_buckets / 4) {
    throw InvalidArgument(fmt::format("max_distance is {}; it must be above {}",
                                      position.max_distance, position.num_buckets / 4));
  }
}

}  // namespace

void validate(const ModelConfig& config) {
  require_positive("d_model", config.d_model);
  require_positive("d_ff", config.d_ff);
  require_positive("num_layers", config.num_layers);
  require_positive("num_heads", config.num_heads);
  require_positive("vocab_size", config.vocab_size);
  require_not_negative("d_head", config.d_head);
  require_not_negative("d_embedding", config.d_embedding);
  require_not_negative("num_layer_groups", config.num_layer_groups);
  if (config.num_layer_groups > config.num_layers) {
    throw InvalidArgument(fmt::format("num_layer_groups is {}; the {} layers make no more groups",
                                      config.num_layer_groups, config.num_layers));
  }
  if (config.d_head == 0 && config.d_model % config.num_heads != 0) {
    throw InvalidArgument(fmt::format("d_model {} is not a multiple of num_heads {}",
                                      config.d_model, config.num_heads));
  }
  if (!(config.norm_eps > 0)) {
    throw InvalidArgument(fmt::format("norm_eps is {}; it must be above 0", config.norm_eps));
  }
  const PositionConfig& position = config.position;
  if (position.first_position < 0) {
    throw InvalidArgument(
        fmt::format("first_position is {}; it must be at least 0", position.first_position));
  }
  if (position.bias == ScoreBias::kBuckets) validate_buckets(position);
  if (position.kind == PositionKind::kSinusoidal) {
    if (!(position.base > 1)) {
      throw InvalidArgument(
          fmt::format("the base of the sinusoids is {}; it must be above 1", position.base));
    }
    if (position.layout == SinusoidalLayout::kOpenNmt && config.embedding_width() % 2 != 0) {
      throw InvalidArgument(
          fmt::format("the opennmt layout needs an even width, not {}", config.embedding_width()));
    }
  }
}

std::string describe(const PositionConfig& position) {
  std::string vectors(to_string(position.kind));
  if (position.kind == PositionKind::kSinusoidal) {
    vectors += fmt::format(" ({})", to_string(position.layout));
  }
  if (position.bias == ScoreBias::kNone) return vectors;
  const std::string bias = fmt::format("bias ({})", to_string(position.bias));
  return position.kind == PositionKind::kNone ? bias : vectors + " + " + bias;
}

float ModelConfig::score_scale() const {
  return scale_scores ? 1.0f / std::sqrt(static_cast<float>(head_dim())) : 1.0f;
}

}  // namespace phasor
