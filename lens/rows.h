// Rows of width d_model in flat arrays: counted, drawn, multiplied, measured.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>
#include <span>

#include "phasor/errors.h"

namespace phasor::internal {

/// The largest relative error of a value rounded to float32 to either side: one unit in the last
/// place. Whatever varies by no more is constant.
constexpr double kRounding = std::numeric_limits<float>::epsilon();  // 2^-23

/// The same for the squared deviations of computed hidden states, as a share of Σ‖h‖²: about eight
/// such units each.
constexpr double kStateRounding = 1e-12;

/// Throws InvalidArgument if x is empty or not a whole number of rows.
template <typename T>
int64_t num_rows(std::span<const T> x, int64_t d_model) {
  const auto size = static_cast<int64_t>(x.size());
  if (d_model < 1 || size == 0 || size % d_model != 0) {
    throw InvalidArgument(fmt::format("{} values are no rows of width {}", size, d_model));
  }
  return size / d_model;
}

/// The same for two arrays that must have the same rows.
template <typename T, typename U>
int64_t num_rows(std::span<const T> a, std::span<const U> b, int64_t d_model) {
  const int64_t rows = num_rows(a, d_model);
  if (a.size() != b.size()) {
    throw InvalidArgument(fmt::format(
        "cannot compare {} values with {}; both must be the same rows", a.size(), b.size()));
  }
  return rows;
}

/// Throws InvalidArgument for a place outside the text.
inline void check_place(int64_t place, int64_t num_tokens) {
  if (place < 0 || place >= num_tokens) {
    throw InvalidArgument(
        fmt::format("place {} is outside a sequence of {} tokens; they are 0 to {}", place,
                    num_tokens, num_tokens - 1));
  }
}

/// Throws InvalidArgument where there is no such `what`, a layer or a head.
inline void check_index(const char* what, int64_t number, int64_t count) {
  if (number >= 0 && number < count) return;
  throw InvalidArgument(
      fmt::format("there is no {} {}; they are 0 to {}", what, number, count - 1));
}

/// A standard normal number by Box and Muller's formula (1958), so that every machine draws the
/// same.
inline double draw_normal(std::mt19937_64& random) {
  const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  const double radius = std::sqrt(-2 * std::log(uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

template <typename T, typename U>
double dot(const T* a, const U* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

template <typename T>
double norm(const T* x, int64_t n) {
  return std::sqrt(dot(x, x, n));
}

}  // namespace phasor::internal
