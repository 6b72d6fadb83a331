// Comparing tensors: relative to the largest magnitude of the expected tensor, or bit by bit.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

namespace phasor {

/// The largest |x|; NaN where there is one.
template <typename T>
double largest_magnitude(std::span<const T> values) {
  double largest = 0;
  for (const T value : values) {
    if (!(std::abs(value) <= largest)) largest = std::abs(value);
  }
  return largest;
}

/// Fails where |actual − expected| is above `tolerance` times the largest |expected|, and prints
/// the worst place with both values.
template <typename T, typename U>
void expect_close(std::span<const T> actual, std::span<const U> expected, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double difference = std::abs(static_cast<double>(actual[i]) - expected[i]);
    if (!(difference <= worst)) {  // also where it is NaN
      worst = difference;
      where = i;
    }
    if (std::isnan(difference)) break;
  }
  const double allowed = tolerance * largest_magnitude(expected);
  EXPECT_TRUE(worst <= allowed) << what << ": element " << where << " of " << actual.size()
                                << " is " << actual[where] << ", expected " << expected[where]
                                << "; max |diff| " << worst << " > " << allowed;
}

/// Fails at the first element whose bits differ.
inline void expect_same_bits(std::span<const float> actual, std::span<const float> expected,
                             const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(actual[i]), std::bit_cast<uint32_t>(expected[i]))
        << what << ": element " << i << " of " << actual.size() << " is " << actual[i]
        << ", expected " << expected[i];
  }
}

/// Whether rows of oneDNN's float32 matmul do not depend on the number of rows: with AVX-512, if
/// the environment does not forbid it.
inline bool matmul_rows_are_independent() {
#if defined(__x86_64__)
  const char* const limit = std::getenv("ONEDNN_MAX_CPU_ISA");
  const std::string isa = limit ? limit : "";
  const bool lowered = isa == "SSE41" || (isa.starts_with("AVX") && !isa.starts_with("AVX512"));
  return __builtin_cpu_supports("avx512f") && !lowered;
#else
  return false;
#endif
}

/// The same bits where the machine can promise them, else within 1e-6 of the largest value.
inline void expect_independent_of_batch(std::span<const float> actual,
                                        std::span<const float> expected, const std::string& what) {
  if (matmul_rows_are_independent()) {
    expect_same_bits(actual, expected, what);
  } else {
    expect_close(actual, expected, 1e-6, what);
  }
}

}  // namespace phasor
