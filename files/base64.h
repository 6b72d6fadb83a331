// Bytes written as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace phasor::internal {

/// Nothing where `text` is not base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace phasor::internal
