// Checks of a ModelConfig.

#include "phasor/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "files/refuse.h"

namespace phasor {

using namespace internal;

namespace {

void require_at_least(int64_t least, std::string_view name, int64_t value) {
  if (value < least)
    refuse<InvalidArgument>("{} is {}; it must be at least {}", name, value, least);
}

constexpr int64_t kMostOffset = int64_t{1} << 24;

void require_at_most(std::string_view name, int64_t value, int64_t most) {
  if (value > most) refuse<InvalidArgument>("{} is {}; it must be at most {}", name, value, most);
}

/// Half of the buckets are for either side; half of those hold one distance each.
void validate_buckets(const PositionConfig& position) {
  require_at_most("max_distance", position.max_distance, kMostOffset);
  if (position.num_buckets < 4 || position.num_buckets % 4 != 0)
    refuse<InvalidArgument>("num_buckets is {}; it must be a multiple of 4", position.num_buckets);
  if (position.max_distance <= position.num_buckets / 4) {
    refuse<InvalidArgument>("max_distance is {}; it must be above {}", position.max_distance,
                            position.num_buckets / 4);
  }
}

void validate_rotary(const RotaryConfig& rotary, int64_t head_dim) {
  const int64_t dims = rotary.dims > 0 ? rotary.dims : head_dim;
  if (dims % 2 != 0 || dims > head_dim || rotary.dims < 0) {
    refuse<InvalidArgument>(
        "rotary positions turn {} columns of a head; it must be an even number up to {}", dims,
        head_dim);
  }
  if (!(rotary.base > 1))
    refuse<InvalidArgument>("the base of the rotation is {}; it must be above 1", rotary.base);
  if (!(rotary.factor > 0) || !(rotary.ntk_factor >= 1) || rotary.ntk_length < 0) {
    refuse<InvalidArgument>(
        "the rotation's factor is {}, its ntk_factor {} and its ntk_length {}; they must be above "
        "0, at least 1, and at least 0",
        rotary.factor, rotary.ntk_factor, rotary.ntk_length);
  }
  if (rotary.ntk_length > 0 && dims < 4)
    throw InvalidArgument("NTK scaling needs at least 4 rotated columns");
}

/// As in T5, half of a side's buckets hold one distance each.
void validate_disentangled(const DisentangledConfig& position) {
  require_at_most("num_buckets", position.num_buckets, kMostOffset);
  require_at_most("max_distance", position.max_distance, kMostOffset);
  if (position.num_buckets < 4 || position.num_buckets % 2 != 0) {
    refuse<InvalidArgument>("num_buckets is {}; it must be an even number from 4 up",
                            position.num_buckets);
  }
  if (position.max_distance != 0 && position.max_distance <= position.num_buckets / 2 + 1) {
    refuse<InvalidArgument>("max_distance is {}; it must be 0 or above {}", position.max_distance,
                            position.num_buckets / 2 + 1);
  }
}

void validate_layers(const ModelConfig& config) {
  const std::vector<LayerAttention>& layers = config.layer_attention;
  if (!layers.empty() && std::ssize(layers) != config.num_layers) {
    refuse<InvalidArgument>("layer_attention has {} entries for {} layers", layers.size(),
                            config.num_layers);
  }
  for (const LayerAttention& layer : layers) {
    require_at_least(0, "the window of a layer's attention", layer.window);
    require_at_most("the window of a layer's attention", layer.window, kMostOffset);
    if (layer.rotary_base != 0 && !(layer.rotary_base > 1 && config.position.rotary)) {
      refuse<InvalidArgument>(
          "a layer's rotary_base is {}; it must be above 1, in a model with rotary positions",
          layer.rotary_base);
    }
  }
}

}  // namespace

void validate(const ModelConfig& config) {
  require_at_least(1, "d_model", config.d_model);
  require_at_least(1, "d_ff", config.d_ff);
  require_at_least(1, "num_layers", config.num_layers);
  require_at_least(1, "num_heads", config.num_heads);
  require_at_least(1, "vocab_size", config.vocab_size);
  require_at_least(0, "d_head", config.d_head);
  require_at_least(0, "d_embedding", config.d_embedding);
  require_at_least(0, "num_layer_groups", config.num_layer_groups);
  if (config.num_layer_groups > config.num_layers) {
    refuse<InvalidArgument>("num_layer_groups is {}; the {} layers make no more groups",
                            config.num_layer_groups, config.num_layers);
  }
  if (config.d_head == 0 && config.d_model % config.num_heads != 0) {
    refuse<InvalidArgument>("d_model {} is not a multiple of num_heads {}", config.d_model,
                            config.num_heads);
  }
  require_at_least(0, "num_kv_heads", config.num_kv_heads);
  if (config.num_heads % config.kv_heads() != 0) {
    refuse<InvalidArgument>("num_heads {} is not a multiple of num_kv_heads {}", config.num_heads,
                            config.num_kv_heads);
  }
  if (config.num_kv_heads > 0 && config.position.disentangled)
    throw InvalidArgument(
        "queries are grouped in disentangled attention; phasor runs one or the other");
  if (!(config.score_width >= 0 && config.score_cap >= 0)) {
    refuse<InvalidArgument>("score_width is {} and score_cap {}; they must be at least 0",
                            config.score_width, config.score_cap);
  }
  if (config.branch_norms && config.norm_order == NormOrder::kPostNorm)
    throw InvalidArgument("branch_norms is true; only a pre-norm model may have such norms");
  if (!(config.norm_eps > 0))
    refuse<InvalidArgument>("norm_eps is {}; it must be above 0", config.norm_eps);
  if (!config.first_attn_norm && config.norm_order == NormOrder::kPostNorm)
    throw InvalidArgument("first_attn_norm is false; only a pre-norm model may lack that norm");
  const PositionConfig& position = config.position;
  require_at_least(0, "first_position", position.first_position);
  if (position.bias == ScoreBias::kBuckets) validate_buckets(position);
  if (position.rotary) validate_rotary(*position.rotary, config.head_dim());
  if (position.disentangled) validate_disentangled(*position.disentangled);
  if (position.rotary && position.disentangled)
    throw InvalidArgument("positions are rotary and disentangled; phasor runs one or the other");
  validate_layers(config);
  if (position.kind == PositionKind::kSinusoidal) {
    if (!(position.base > 1))
      refuse<InvalidArgument>("the base of the sinusoids is {}; it must be above 1", position.base);
    if (position.layout == SinusoidalLayout::kOpenNmt && config.embedding_width() % 2 != 0) {
      refuse<InvalidArgument>("the opennmt layout needs an even width, not {}",
                              config.embedding_width());
    }
  }
}

std::string describe(const PositionConfig& position) {
  std::vector<std::string> kinds;
  if (position.kind == PositionKind::kSinusoidal) {
    kinds.push_back(fmt::format("sinusoidal ({})", to_string(position.layout)));
  } else if (position.kind == PositionKind::kLearned) {
    kinds.emplace_back("learned");
  }
  if (position.bias != ScoreBias::kNone) {
    kinds.push_back(fmt::format("bias ({})", to_string(position.bias)));
  }
  if (position.rotary) kinds.emplace_back("rotary");
  if (position.disentangled) kinds.emplace_back("disentangled");
  return kinds.empty() ? "none" : fmt::format("{}", fmt::join(kinds, " + "));
}

// Disentangled scores are sums of up to three products of the same size.
float ModelConfig::score_scale() const {
  if (!scale_scores) return 1.0f;
  if (score_width > 0) return static_cast<float>(1.0 / std::sqrt(score_width));
  int64_t products = 1;
  if (position.disentangled) {
    products += (position.disentangled->content_to_position ? 1 : 0) +
                (position.disentangled->position_to_content ? 1 : 0);
  }
  return 1.0f / std::sqrt(static_cast<float>(products * head_dim()));
}

double ModelConfig::rotary_base(int64_t layer) const {
  const double own = layer_attention.empty() ? 0 : layer_attention[layer].rotary_base;
  return own > 0 ? own : position.rotary.value().base;
}

}  // namespace phasor
