// The number of OpenMP threads, and rows spread over them.
#pragma once

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "phasor/errors.h"

namespace phasor::internal {

/// libgomp keeps the team size per calling thread; it is restored at the end.
class TeamSize {
 public:
  explicit TeamSize(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~TeamSize() { omp_set_num_threads(before_); }
  TeamSize(const TeamSize&) = delete;
  TeamSize& operator=(const TeamSize&) = delete;

 private:
  int before_;
};

/// The number of threads that an option `threads` means. Throws InvalidArgument below 0 and above
/// 1024.
inline int team_size(int threads) {
  constexpr int kMostThreads = 1024;
  if (threads < 0 || threads > kMostThreads) {
    throw InvalidArgument(
        fmt::format("threads is {}; it must be 0 (all cores) to {}", threads, kMostThreads));
  }
  return threads > 0 ? threads : omp_get_max_threads();
}

/// Splits rows of `width` values over the threads of the caller's team, if there are enough of
/// them: body(first, count).
template <typename Body>
void for_row_ranges(int64_t num_rows, int64_t width, Body body) {
  constexpr int64_t kValues = 8192;  // fewer are not worth waking other threads
  const int64_t most = std::max<int64_t>(1, kValues / width);
  const int64_t ranges = (num_rows + most - 1) / most;
#pragma omp parallel for if (ranges > 1)
  for (int64_t r = 0; r < ranges; ++r) {
    body(r * most, std::min(most, num_rows - r * most));
  }
}

}  // namespace phasor::internal
