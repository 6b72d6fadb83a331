// The positions of a model, from its config.json.
#pragma once

#include <string_view>

#include "files/config_reader.h"
#include "models/families.h"

namespace phasor::internal {

/// Sets position, max_positions and layer_attention for a family of Transformers, from the family's
/// row and the keys of config.json in their old and new spellings. The sizes must be set before.
void read_positions(const ConfigReader& reader, const Family& family, ModelConfig& config);

/// The keys of rotary positions that read_positions() follows, in families that have those.
bool is_rotary_key(std::string_view key);

/// The object "position" of phasor's own type, which states everything.
PositionConfig read_position(const ConfigReader& reader);

}  // namespace phasor::internal
