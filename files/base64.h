// Bytes written as text.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace phasor::internal {

/// As RFC 4648 has it: "AAAAPw==".
std::string to_base64(std::span<const std::byte> bytes);

/// Nothing where `text` is not base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace phasor::internal
