// What nearly every test includes: GoogleTest, JSON, fmt, the standard library, phasor's public
// headers, files, random numbers, and the checks of numbers, errors and times; and two short names.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "phasor/lens.h"
#include "phasor/phasor.h"
#include "tests/support/test_files.h"

// Whether this is a build of a sanitizer. GCC has a macro for each, clang __has_feature.
#if !defined(__has_feature)
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define HAS_ADDRESS_SANITIZER 1
#else
#define HAS_ADDRESS_SANITIZER 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define HAS_THREAD_SANITIZER 1
#else
#define HAS_THREAD_SANITIZER 0
#endif

namespace phasor {

namespace fs = std::filesystem;
using nlohmann::json;

/// Uniform in [−spread, spread], the same on every machine.
inline std::vector<float> draw(int64_t count, uint64_t seed, float spread = 1) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (float& value : values)
    value = spread * static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-52 - 1);
  return values;
}

// Tensors: relative to the largest magnitude of the expected tensor, or bit by bit.

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
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
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

/// Rows of numbers, one after the other.
inline std::vector<double> joined(const json& rows) {
  std::vector<double> numbers;
  for (const json& row : rows) numbers.insert(numbers.end(), row.begin(), row.end());
  return numbers;
}

/// Fails where a number is further from a reference's than the reference's atol and rtol allow.
inline void expect_golden(std::span<const float> got, const std::vector<double>& want,
                          const json& golden) {
  ASSERT_EQ(got.size(), want.size());
  const double atol = golden.at("atol"), rtol = golden.at("rtol");
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], atol + rtol * std::abs(want[i])) << i;
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

// What is thrown: the type, one line, and the words that a reader needs.

/// Expects `run` to throw an Error whose message is one line and contains each of `words`.
template <typename Error>
void expect_error(const std::function<void()>& run, const std::vector<std::string>& words) {
  try {
    run();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_FALSE(message.empty());
    for (const std::string& word : words)
      EXPECT_NE(message.find(word), std::string::npos)
          << "'" << word << "' is not in the message: " << message;
    return;
  } catch (const std::exception& error) {
    FAIL() << "an exception of another type: " << error.what();
  }
  FAIL() << "nothing was thrown; expected a message with: "
         << (words.empty() ? std::string("anything") : words.front());
}

/// What the files, or the caller, have done wrong.
#define EXPECT_REFUSED(call, ...) \
  ::phasor::expect_error<::phasor::ModelError>([&] { call; }, __VA_ARGS__)
#define EXPECT_INVALID(call, ...) \
  ::phasor::expect_error<::phasor::InvalidArgument>([&] { call; }, __VA_ARGS__)

/// Expects an Error of this code, whose message contains `words`.
inline void expect_code(ErrorCode code, const std::string& said, const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(said), std::string::npos) << error.what();
    return;
  }
  FAIL() << "nothing was thrown; expected " << to_string(code);
}

/// Whether one of `notes` contains `words`.
inline bool mentions(const std::vector<std::string>& notes, const std::string& words) {
  return std::ranges::any_of(
      notes, [&](const std::string& note) { return note.find(words) != note.npos; });
}

/// Expects one note, which contains each of `words`.
inline void expect_one_note(const std::vector<std::string>& notes,
                            const std::vector<std::string>& words) {
  EXPECT_EQ(notes.size(), 1u) << testing::PrintToString(notes);
  for (const std::string& word : words)
    EXPECT_TRUE(mentions(notes, word)) << word << " is not in " << testing::PrintToString(notes);
}

#ifdef NDEBUG
constexpr bool kTimesCount = !HAS_ADDRESS_SANITIZER && !HAS_THREAD_SANITIZER;
#else
constexpr bool kTimesCount = false;
#endif

/// Does `work`, which may take `limit` seconds of the processor, of all threads. Only an optimized
/// program is judged: a sanitizer makes some code ten times as slow.
template <class Work>
void expect_cpu_seconds_below(double limit, const Work& work) {
  const std::clock_t start = std::clock();
  work();
  if (!kTimesCount) return;
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, limit);
}

}  // namespace phasor

/// Declares `folder` as ../shared/`below`, or skips the test with a sentence.
#define PHASOR_SHARED_OR_SKIP(folder, below)                                       \
  const auto folder##_root = phasor::shared_dir();                                 \
  if (!folder##_root || !std::filesystem::exists(*folder##_root / (below))) {      \
    GTEST_SKIP() << "The reference data '" << (below)                              \
                 << "' is not here; set PHASOR_SHARED to the folder that has it."; \
  }                                                                                \
  const std::filesystem::path folder = *folder##_root / (below)
