// Encoder::classify() and label(); the options are checked.
#pragma once

#include <span>
#include <string_view>

#include "outputs/texts.h"

namespace phasor::internal {

Classification classify(const Runner& runner, const TextInput& input, const TextOptions& options);
Labels label(const Runner& runner, std::span<const std::string_view> texts,
             const TextOptions& options);

}  // namespace phasor::internal
