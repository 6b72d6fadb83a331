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
#include <vector>

#include "phasor/encoder.h"

namespace phasor {

/// A copy of the states of sequence 0, for an Encoding that is gone after the expression.
inline std::vector<float> hidden_of(const Encoding& encoding) {
  const std::span<const float> hidden = encoding[0].hidden;
  return {hidden.begin(), hidden.end()};
}
inline std::vector<float> hidden_of(const std::shared_ptr<const Model>& model,
                                    const std::vector<int32_t>& ids, const Positions& positions) {
  return hidden_of(Encoder(model).encode_ids(ids, {.positions = positions}));
}

/// The largest finite |x|; NaN where there is one.
template <typename T>
double largest_magnitude(std::span<const T> values) {
  double largest = 0;
  for (const T value : values) {
    if (std::isinf(value)) continue;
    if (!(std::abs(value) <= largest)) largest = std::abs(value);
  }
  return largest;
}

/// max |a − b|
template <typename T>
double largest_difference(const std::vector<T>& a, const std::vector<T>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest;
}

/// Fails where |actual − expected| is above `tolerance` times the largest |expected|, and prints
/// the worst place with both values. An infinity is close to itself only.
template <typename T, typename U>
void expect_close(std::span<const T> actual, std::span<const U> expected, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (static_cast<double>(actual[i]) == static_cast<double>(expected[i])) continue;
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

}  // namespace phasor
