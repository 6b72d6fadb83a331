// How many threads OpenMP uses, here and now.
#pragma once

#include <fmt/format.h>
#include <omp.h>

#include "phasor/errors.h"

namespace phasor {

/// libgomp keeps the team size per calling thread; the caller gets its own back.
class TeamSize {
 public:
  explicit TeamSize(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~TeamSize() { omp_set_num_threads(before_); }
  TeamSize(const TeamSize&) = delete;
  TeamSize& operator=(const TeamSize&) = delete;

 private:
  int before_;
};

/// What an option `threads` means. Throws InvalidArgument below 0.
inline int team_size(int threads) {
  if (threads < 0) {
    throw InvalidArgument(fmt::format("threads is {}; it must be 0 (all cores) or more", threads));
  }
  return threads > 0 ? threads : omp_get_max_threads();
}

}  // namespace phasor
