// Every number that is known of a layer under its name, which is its path in the JSON.
#pragma once

#include <string>

#include "infer/observed.h"

namespace infer {

/// Calls visit(name, number) for each; a number of a layer that is not const may be changed.
template <typename Layer, typename Visit>
void for_each_number(Layer& layer, Visit visit) {
  visit("norm", layer.norm);
  if (layer.position_effect) visit("position_effect", *layer.position_effect);
  if (layer.direct_position) {
    visit("direct_position.norm", layer.direct_position->norm);
    visit("direct_position.share", layer.direct_position->alignment);
  }
  for (size_t kind = 0; layer.order && kind < kReorderingNames.size(); ++kind) {
    visit("order_sensitivity." + std::string(kReorderingNames[kind]), (*layer.order)[kind]);
  }
  if (!layer.attention) return;
  visit("attention.distance", layer.attention->distance);
  for (auto& [offset, share] : layer.attention->by_offset) {
    visit("attention.by_offset." + std::to_string(offset), share);
  }
}

}  // namespace infer
