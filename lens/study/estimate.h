// Means over texts, and the intervals in which they are known.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "phasor/lens/bootstrap.h"

namespace phasor::internal {

/// Intervals draw at most so many blocks of texts; text i is in block i mod 256.
constexpr int64_t kMostBlocks = 256;

struct Estimate {
  double mean = 0;
  Interval interval = {};  // NaN with fewer than two texts
};

/// Of values that belong to texts: `texts` [values], numbers from 0.
Estimate estimate(std::span<const double> values, std::span<const int64_t> texts);

/// Makes intervals of means over the same texts: the draws are made once.
class Intervals {
 public:
  /// Of Σ sums / Σ weights over blocks of texts.
  Interval of(std::span<const double> sums, std::span<const double> weights);

 private:
  std::optional<Bootstrap> draws_;
};

}  // namespace phasor::internal
