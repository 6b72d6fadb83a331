// The most memory that this process had resident, from /proc where there is one.
#include "infer/commands/bench/peak_memory.h"

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace infer {

void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << '5'; }

int64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return 1024 * kilobytes;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024 * int64_t{usage.ru_maxrss};
}

}  // namespace infer
