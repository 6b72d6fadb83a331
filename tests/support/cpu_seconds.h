// For tests of what may not take long.
#pragma once

#include <gtest/gtest.h>

#include <ctime>

#include "tests/support/sanitizer.h"

namespace phasor {

#ifdef NDEBUG
constexpr bool kTimesCount = !HAS_ADDRESS_SANITIZER && !HAS_THREAD_SANITIZER;
#else
constexpr bool kTimesCount = false;
#endif

/// Does `work`, which may take `limit` seconds. They are the processor's, of all threads: a busy
/// machine changes little. Only an optimized program is judged: a sanitizer makes some code ten
/// times as slow.
template <class Work>
void expect_cpu_seconds_below(double limit, const Work& work) {
  const std::clock_t start = std::clock();
  work();
  if (!kTimesCount) return;
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, limit);
}

}  // namespace phasor
