// The keys of a config.json that phasor follows, refuses, or ignores.
#pragma once

#include <string>
#include <vector>

#include "models/config_reader.h"
#include "models/families.h"

namespace phasor::internal {

/// The family of model_type. Throws ModelError listing the known families.
const Family& family_of(const ConfigReader& reader);

/// Throws ModelError naming a key that needs something phasor does not implement.
void refuse_other_architectures(const ConfigReader& reader, const Family& family);

/// The keys that phasor ignores for a family of Transformers, sorted.
std::vector<std::string> unread_keys(const ConfigReader& reader, const Family& family);

}  // namespace phasor::internal
