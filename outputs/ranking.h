// Encoder::rank(); the options are checked.
#pragma once

#include <span>
#include <string_view>

#include "outputs/texts.h"

namespace phasor::internal {

Ranking rank(const Runner& runner, std::string_view query,
             std::span<const std::string_view> documents, const TextOptions& options);

}  // namespace phasor::internal
