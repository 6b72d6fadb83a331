// Shapes of tensors in messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace phasor::internal {

inline constexpr int64_t kAnyRows = -1;  // in a shape

/// "[8192, 128]"; "any" for kAnyRows.
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace phasor::internal
