// How much memory this program has.
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace phasor {

/// What is resident, in bytes; 0 where the system does not say.
inline int64_t resident_memory() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

/// What is taken from the heap, in bytes, its blocks of pages too; 0 where the C library is silent.
inline int64_t heap_in_use() {
#ifdef __GLIBC__
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
#else
  return 0;
#endif
}

}  // namespace phasor
