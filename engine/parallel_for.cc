// An exception that leaves a parallel region ends the program, so all are caught inside.

#include "engine/parallel_for.h"

#include <algorithm>
#include <exception>
#include <mutex>

namespace phasor::internal {

void parallel_for(int64_t count, int threads, const std::function<void(int64_t i)>& body) {
  std::mutex mutex;  // guards the next two
  std::exception_ptr failure;
  int64_t failed = count;
  const auto team = static_cast<int>(std::clamp<int64_t>(count, 1, threads));
#pragma omp parallel for schedule(dynamic) num_threads(team)
  for (int64_t i = 0; i < count; ++i) {
    try {
      body(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (i < failed) {
        failed = i;
        failure = std::current_exception();
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace phasor::internal
