// The family of a config.json, and the keys that phasor refuses.
#pragma once

#include "files/config_reader.h"
#include "models/families.h"

namespace phasor::internal {

/// The family of model_type. Throws ModelError listing the known families.
const Family& family_of(const ConfigReader& reader);

/// Throws ModelError naming a key that needs something phasor does not implement.
void refuse_other_architectures(const ConfigReader& reader, const Family& family);

}  // namespace phasor::internal
