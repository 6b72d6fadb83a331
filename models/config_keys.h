// Which keys of a config.json phasor follows, which it must refuse, and which it leaves alone.
#pragma once

#include <string>
#include <vector>

#include "models/config_reader.h"
#include "models/families.h"

namespace phasor::internal {

/// The family that model_type names. Throws ModelError listing the families there are.
const Family& family_of(const ConfigReader& reader);

/// Throws ModelError naming a key that asks for what phasor does not implement.
void refuse_other_architectures(const ConfigReader& reader, const Family& family);

/// The keys that phasor does not read for a family of Transformers, sorted.
std::vector<std::string> unread_keys(const ConfigReader& reader, const Family& family);

}  // namespace phasor::internal
