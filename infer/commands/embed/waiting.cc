#include "infer/commands/embed/waiting.h"

#include <unistd.h>

#include <cstdlib>

namespace infer {

void bound_spinning(char** argv) {
  // About half a millisecond: longer than a step of the forward pass, shorter than a time slice.
  constexpr const char* kSpins = "10000";
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  constexpr const char* kMilliseconds = "1";  // for clang's OpenMP, which counts in these
  if (setenv("GOMP_SPINCOUNT", kSpins, 0) != 0) return;
  if (setenv("KMP_BLOCKTIME", kMilliseconds, 0) != 0) return;
  execv("/proc/self/exe", argv);
}

}  // namespace infer
