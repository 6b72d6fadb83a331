// Intervals for means over texts.
//
// The tokens of one text are related, so a text, not a token, is what an interval must draw anew
// (a cluster bootstrap; Efron 1979, Field & Welsh 2007). A mean over all tokens is a ratio: the sum
// of what the texts have by the sum of their weights. Each draw takes as many texts as there are,
// with replacement, and computes that ratio; the interval holds the middle 95 % of the draws.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "phasor/lens/observe.h"

namespace phasor {

/// The same draws for every number of the same texts. Immutable: any thread.
class Bootstrap {
 public:
  /// Throws InvalidArgument for fewer than two texts or fewer than 40 draws. The same seed gives
  /// the same draws on every machine. Takes num_draws·num_texts bytes at least.
  explicit Bootstrap(int64_t num_texts, int64_t num_draws = 1000, uint64_t seed = 1);

  int64_t num_texts() const { return num_texts_; }

  /// Of Σ sums / Σ weights; both are [num_texts]. Draws whose weights do not sum to more than 0 are
  /// left out; where every draw is, both ends are NaN. Throws InvalidArgument for another
  /// number of texts.
  Interval ratio(std::span<const double> sums, std::span<const double> weights) const;

 private:
  int64_t num_texts_, num_draws_;
  std::vector<uint16_t> times_;  // [num_draws, num_texts], how often a draw has a text
};

}  // namespace phasor
