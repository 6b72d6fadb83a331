// Means over many texts of what is known of each, and the intervals in which they are known.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lens/bootstrap.h"
#include "lens/study/observed.h"

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

/// Every token of every text counts as much as any other.
class Means {
 public:
  explicit Means(Observed run) : mean_(std::move(run)) {}
  /// All texts must be of the same run.
  void add(const Observed& text);

  /// A row that some texts do not have is the mean over the others. A column that a text does not
  /// have counts as 0: nothing goes to an offset that is longer than the text. A cell without a
  /// number is not counted. The view's columns have intervals over texts. Without tokens and
  /// arrays.
  Observed result() const;

 private:
  /// Of blocks of texts, of which the last may be missing; see kMostBlocks.
  using Sums = std::vector<double>;
  struct Cell {
    Sums sums = {};
    Sums absent = {};  // the weights of texts without a number
  };
  struct Sum {
    Row place;
    Sums weights = {};
    std::map<std::string, Cell> cells = {};  // by column
  };
  void add_to(Sums& sums, double value) const;
  /// The mean, and its interval where `intervals` are given; NaN where no text has a number.
  Estimate estimate_of(const Sum& sum, const Cell& cell, Intervals* intervals) const;

  Observed mean_;
  int64_t texts_ = 0;
  std::map<std::string, std::vector<Sum>> sums_;                    // by view
  std::map<std::string, std::pair<int64_t, std::string>> missing_;  // in how many texts, and why
};

}  // namespace phasor::internal
