// Attention by distance, and positional heads.
#include "phasor/lens/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "lens/rows.h"
#include "phasor/errors.h"

namespace phasor {
using namespace internal;

namespace {

constexpr double kPositionalShare = 0.9;
constexpr int64_t kFewestTokens = 3;  // of a text that can have positional heads

void check_pattern(std::span<const float> pattern, int64_t num_heads, int64_t num_tokens) {
  if (num_heads < 1 || num_tokens < 1 ||
      static_cast<int64_t>(pattern.size()) != num_heads * num_tokens * num_tokens) {
    throw InvalidArgument(fmt::format("{} values are no pattern of {} heads and {} tokens",
                                      pattern.size(), num_heads, num_tokens));
  }
}

double distance_of(std::span<const double> by_offset) {
  const int64_t last = std::ssize(by_offset) / 2, tokens = last + 1;
  double distance = 0;
  for (int64_t i = 0; i < std::ssize(by_offset); ++i) {
    const int64_t size = std::abs(i - last), rows = tokens - size;
    distance += by_offset[i] * static_cast<double>(size * rows);
  }
  return distance / static_cast<double>(tokens);
}

double entropy_of(std::span<const float> row) {
  double entropy = 0;
  for (const double a : row) {
    if (a > 0) entropy -= a * std::log(a);
  }
  return entropy;
}

// A head's pattern [T, T].
class Pattern {
 public:
  Pattern(std::span<const float> values, int64_t num_tokens)
      : values_(values), num_tokens_(num_tokens) {}

  std::span<const float> row(int64_t i) const {
    return values_.subspan(i * num_tokens_, num_tokens_);
  }

  double mean_to(int64_t place) const {
    double sum = 0;
    for (int64_t i = 0; i < num_tokens_; ++i) sum += row(i)[place];
    return sum / static_cast<double>(num_tokens_);
  }

  // See HeadProfile::text_previous; `is_special` is [T].
  double mean_to_text_neighbour(int offset, const std::vector<bool>& is_special) const {
    double sum = 0;
    int64_t rows = 0;
    for (int64_t i = std::max(-offset, 0); i < num_tokens_ - std::max(offset, 0); ++i) {
      if (is_special[i] || is_special[i + offset]) continue;
      double all = 0;
      for (int64_t j = 0; j < num_tokens_; ++j) all += is_special[j] ? 0 : row(i)[j];
      sum += all > 0 ? row(i)[i + offset] / all : 0;
      ++rows;
    }
    return rows > 0 ? sum / static_cast<double>(rows) : 0;
  }

  double mean_entropy() const {
    double sum = 0;
    for (int64_t i = 0; i < num_tokens_; ++i) sum += entropy_of(row(i));
    return sum / static_cast<double>(num_tokens_);
  }

  // Of the T − 1 rows that have a neighbour at this offset (±1), the share whose attention to it is
  // larger than to any other token.
  double share_led_by(int offset) const {
    int64_t led = 0;
    for (int64_t i = std::max(-offset, 0); i < num_tokens_ - std::max(offset, 0); ++i)
      led += leads(row(i), i + offset) ? 1 : 0;
    return led > 0 ? static_cast<double>(led) / static_cast<double>(num_tokens_ - 1) : 0;
  }

 private:
  static bool leads(std::span<const float> row, int64_t place) {
    for (int64_t j = 0; j < std::ssize(row); ++j) {
      if (j != place && !(row[j] < row[place])) return false;
    }
    return true;
  }

  std::span<const float> values_;
  int64_t num_tokens_;
};

HeadProfile profile_of(std::span<const float> values, int64_t num_tokens,
                       std::span<const int64_t> special) {
  const Pattern pattern(values, num_tokens);
  HeadProfile profile{.by_offset = attention_by_offset(values, 1, num_tokens)};
  const auto weight = [&](int64_t offset) {
    return num_tokens > 1 ? profile.by_offset[num_tokens - 1 + offset] : 0;
  };
  profile.previous = weight(-1);
  profile.self = profile.by_offset[num_tokens - 1];
  profile.next = weight(1);
  profile.first = pattern.mean_to(0);
  for (const int64_t place : special) profile.special += pattern.mean_to(place);
  std::vector<bool> is_special(num_tokens);
  for (const int64_t place : special) is_special[place] = true;
  profile.text_previous = pattern.mean_to_text_neighbour(-1, is_special);
  profile.text_next = pattern.mean_to_text_neighbour(1, is_special);
  profile.mean_distance = distance_of(profile.by_offset);
  profile.entropy = pattern.mean_entropy();
  if (num_tokens > 1) {
    profile.entropy_share = profile.entropy / std::log(static_cast<double>(num_tokens));
  }
  for (const int offset : {-1, 1}) {
    const double led = pattern.share_led_by(offset);
    if (led <= profile.positional_share) continue;
    profile.positional_share = led;
    if (led >= kPositionalShare && num_tokens >= kFewestTokens) profile.positional_offset = offset;
  }
  return profile;
}

}  // namespace

std::vector<double> attention_by_offset(std::span<const float> pattern, int64_t num_heads,
                                        int64_t num_tokens) {
  check_pattern(pattern, num_heads, num_tokens);
  std::vector<double> weights(2 * num_tokens - 1);
  const int64_t rows = num_heads * num_tokens;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t i = row % num_tokens;
    for (int64_t j = 0; j < num_tokens; ++j) {
      weights[j - i + num_tokens - 1] += pattern[row * num_tokens + j];
    }
  }
  for (int64_t d = 1 - num_tokens; d < num_tokens; ++d)
    weights[d + num_tokens - 1] /= static_cast<double>(num_heads * (num_tokens - std::abs(d)));
  return weights;
}

double mean_attention_distance(std::span<const float> pattern, int64_t num_heads,
                               int64_t num_tokens) {
  return distance_of(attention_by_offset(pattern, num_heads, num_tokens));
}

std::vector<HeadProfile> head_profiles(std::span<const float> pattern, int64_t num_heads,
                                       int64_t num_tokens, std::span<const int64_t> special) {
  check_pattern(pattern, num_heads, num_tokens);
  for (const int64_t place : special) check_place(place, num_tokens);
  std::vector<HeadProfile> profiles;
  const int64_t size = num_tokens * num_tokens;
  for (int64_t h = 0; h < num_heads; ++h) {
    profiles.push_back(profile_of(pattern.subspan(h * size, size), num_tokens, special));
  }
  return profiles;
}

}  // namespace phasor
