// What position does, as numbers: norms, cosines and attention distances over activations.

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "phasor/errors.h"
#include "phasor/lens.h"

namespace phasor {
namespace {

int64_t num_rows(std::span<const float> x, int64_t d_model) {
  const auto size = static_cast<int64_t>(x.size());
  if (d_model < 1 || size == 0 || size % d_model != 0) {
    throw InvalidArgument(fmt::format("{} values are no rows of width {}", size, d_model));
  }
  return size / d_model;
}

double dot(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

}  // namespace

double mean_norm(std::span<const float> x, int64_t d_model) {
  const int64_t rows = num_rows(x, d_model);
  double sum = 0;
  for (int64_t t = 0; t < rows; ++t) {
    const float* row = &x[t * d_model];
    sum += std::sqrt(dot(row, row, d_model));
  }
  return sum / static_cast<double>(rows);
}

double mean_cosine_distance(std::span<const float> a, std::span<const float> b, int64_t d_model) {
  const int64_t rows = num_rows(a, d_model);
  if (a.size() != b.size()) {
    throw InvalidArgument(fmt::format(
        "cannot compare {} values with {}; both must be the same rows", a.size(), b.size()));
  }
  double sum = 0;
  for (int64_t t = 0; t < rows; ++t) {
    const float* u = &a[t * d_model];
    const float* v = &b[t * d_model];
    const double norms = std::sqrt(dot(u, u, d_model) * dot(v, v, d_model));
    sum += 1.0 - (norms > 0 ? dot(u, v, d_model) / norms : 0.0);
  }
  return sum / static_cast<double>(rows);
}

double mean_attention_distance(std::span<const float> pattern, int64_t num_heads,
                               int64_t num_tokens) {
  if (num_heads < 1 || num_tokens < 1 ||
      static_cast<int64_t>(pattern.size()) != num_heads * num_tokens * num_tokens) {
    throw InvalidArgument(fmt::format("{} values are no pattern of {} heads and {} tokens",
                                      pattern.size(), num_heads, num_tokens));
  }
  double sum = 0;  // Σ_h Σ_i Σ_j A_ij·|i − j|
  for (int64_t row = 0; row < num_heads * num_tokens; ++row) {
    const int64_t i = row % num_tokens;
    for (int64_t j = 0; j < num_tokens; ++j) {
      sum += pattern[row * num_tokens + j] * static_cast<double>(std::abs(i - j));
    }
  }
  return sum / static_cast<double>(num_heads * num_tokens);
}

}  // namespace phasor
