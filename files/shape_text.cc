#include "files/shape_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace phasor::internal {

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) {
    sizes.push_back(size == kAnyRows ? "any" : std::to_string(size));
  }
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

}  // namespace phasor::internal
