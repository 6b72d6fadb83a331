// How much memory this program has had.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace infer {

/// The most bytes that were resident at once, since the program began or clear_refs was written.
inline int64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return 1024 * kilobytes;
  }
  return 0;
}

}  // namespace infer
