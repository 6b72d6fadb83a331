// The keys of a config.json that say more than sizes: the family, the positions, what phasor
// refuses, and what changes no number.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "files/config_reader.h"
#include "files/model_folder.h"
#include "models/families.h"

namespace phasor::internal {

/// The family of model_type. Throws ModelError listing the known families.
const Family& family_of(const ConfigReader& reader);

/// Throws ModelError naming a key that needs something phasor does not implement.
void refuse_other_architectures(const ConfigReader& reader, const Family& family);

/// Sets position, max_positions and layer_attention for a family of Transformers, from the family's
/// row and the keys of config.json in their old and new spellings. The sizes must be set before.
void read_positions(const ConfigReader& reader, const Family& family, ModelConfig& config);

/// The keys of rotary positions that read_positions() follows, in families that have those.
bool is_rotary_key(std::string_view key);

/// The object "position" of phasor's own type, which states everything.
PositionConfig read_position(const ConfigReader& reader);

/// Why `key` of `file` ("config.json", "1_Pooling/config.json") changes nothing; empty if that is
/// not known. A key inside an object is written "rope_parameters.beta_fast".
std::string_view why_unused(std::string_view file, std::string_view key);

/// Sorts what nobody asked for: keys that change nothing go to `unused`, as "file: key"; the others
/// become a note for each file.
void report_others(const ModelFolder& folder, std::vector<std::string>& unused,
                   std::vector<std::string>& notes);

}  // namespace phasor::internal
