// The loop over threads: every index once, and exceptions that come back to the caller.
#include "engine/parallel_for.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace phasor {
using namespace internal;

namespace {

constexpr int kThreads[] = {1, 4};

TEST(ParallelForTest, CallsTheBodyOnceForEachIndex) {
  for (const int threads : kThreads) {
    for (const int64_t count : {0, 1, 3, 1000}) {
      std::vector<int> calls(count);
      parallel_for(count, threads, [&](int64_t i) { ++calls[i]; });
      EXPECT_EQ(calls, std::vector<int>(count, 1));
    }
  }
}

TEST(ParallelForTest, OfManyExceptionsTheFirstByIndexReachesTheCallerWhenAllHaveRun) {
  for (const int threads : kThreads) {
    std::atomic<int> calls = 0;
    try {
      parallel_for(100, threads, [&](int64_t i) {
        ++calls;
        if (i % 10 == 7) throw std::runtime_error(std::to_string(i));
      });
      ADD_FAILURE() << "nothing was thrown on " << threads << " threads";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "7");
    }
    EXPECT_EQ(calls, 100);
  }
}

TEST(ParallelForTest, AnExceptionKeepsItsType) {
  const auto body = [](int64_t) { throw std::bad_alloc(); };
  for (const int threads : kThreads) {
    EXPECT_THROW(parallel_for(8, threads, body), std::bad_alloc);
  }
}

}  // namespace
}  // namespace phasor
