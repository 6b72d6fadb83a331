#include "lens/bootstrap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "phasor/errors.h"

namespace phasor {

Bootstrap::Bootstrap(int64_t num_texts, int64_t num_draws, uint64_t seed)
    : num_texts_(num_texts), num_draws_(num_draws) {
  constexpr int64_t kMostTexts = std::numeric_limits<uint16_t>::max();
  if (num_texts < 2 || num_texts > kMostTexts || num_draws < 40) {
    throw InvalidArgument(
        fmt::format("an interval needs 2 to {} texts and at least 40 draws, not {} texts and {} "
                    "draws",
                    kMostTexts, num_texts, num_draws));
  }
  times_.resize(num_draws * num_texts);
  std::mt19937_64 random(seed);
  for (int64_t draw = 0; draw < num_draws; ++draw) {
    for (int64_t i = 0; i < num_texts; ++i) {
      ++times_[draw * num_texts + static_cast<int64_t>(random() % num_texts)];
    }
  }
}

Interval Bootstrap::ratio(std::span<const double> sums, std::span<const double> weights) const {
  if (std::ssize(sums) != num_texts_ || std::ssize(weights) != num_texts_) {
    throw InvalidArgument(fmt::format("there are {} sums and {} weights of {} texts", sums.size(),
                                      weights.size(), num_texts_));
  }
  std::vector<double> ratios;
  for (int64_t draw = 0; draw < num_draws_; ++draw) {
    const uint16_t* const times = &times_[draw * num_texts_];
    double sum = 0, weight = 0;
    for (int64_t i = 0; i < num_texts_; ++i) {
      sum += times[i] * sums[i];
      weight += times[i] * weights[i];
    }
    if (weight > 0) ratios.push_back(sum / weight);
  }
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (ratios.empty()) return {kNaN, kNaN};
  // As many draws below as above: ⌊n/40⌋ on either side.
  const auto at = [&](size_t rank) {
    std::nth_element(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(rank),
                     ratios.end());
    return ratios[rank];
  };
  const size_t outside = ratios.size() / 40;
  return {at(outside), at(ratios.size() - 1 - outside)};
}

}  // namespace phasor
