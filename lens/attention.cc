// How far attention reaches.

#include "phasor/lens/attention.h"

#include <fmt/format.h>

#include <cstdlib>

#include "phasor/errors.h"

namespace phasor {

std::vector<double> attention_by_offset(std::span<const float> pattern, int64_t num_heads,
                                        int64_t num_tokens) {
  if (num_heads < 1 || num_tokens < 1 ||
      static_cast<int64_t>(pattern.size()) != num_heads * num_tokens * num_tokens) {
    throw InvalidArgument(fmt::format("{} values are no pattern of {} heads and {} tokens",
                                      pattern.size(), num_heads, num_tokens));
  }
  std::vector<double> shares(2 * num_tokens - 1);
  const int64_t rows = num_heads * num_tokens;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t i = row % num_tokens;
    for (int64_t j = 0; j < num_tokens; ++j) {
      shares[j - i + num_tokens - 1] += pattern[row * num_tokens + j];
    }
  }
  for (double& share : shares) share /= static_cast<double>(rows);
  return shares;
}

double mean_attention_distance(std::span<const float> pattern, int64_t num_heads,
                               int64_t num_tokens) {
  const std::vector<double> shares = attention_by_offset(pattern, num_heads, num_tokens);
  double distance = 0;
  for (int64_t i = 0; i < std::ssize(shares); ++i) {
    distance += shares[i] * static_cast<double>(std::abs(i - (num_tokens - 1)));
  }
  return distance;
}

}  // namespace phasor
