// How much memory this program has resident.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace phasor {

/// In bytes; 0 where the system does not say.
inline int64_t resident_memory() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace phasor
