// Means over many texts of what is known of each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "infer/experiment/observed.h"

namespace infer {

/// Every token of every text counts as much as any other.
class ObservedMeans {
 public:
  /// All texts must be of the same run.
  void add(const Observed& text);

  int64_t texts() const { return texts_; }
  int64_t tokens() const { return tokens_; }
  int64_t reordered_texts() const { return reordered_texts_; }  // those with two tokens to reorder
  /// A number that some texts do not have is the mean over the others; what is missing has no text.
  /// Without Observed::input and all arrays.
  Observed result() const;

 private:
  struct Sum {
    double sum = 0, weight = 0;
  };
  using Sums = std::map<std::pair<int64_t, std::string>, Sum>;  // by head and name

  int64_t texts_ = 0, tokens_ = 0, reordered_texts_ = 0;
  Observed mean_;           // has every number that some text has
  Sums text_sums_;          // of no layer
  std::vector<Sums> sums_;  // [L + 1]
  std::map<Measure, std::pair<int64_t, std::string>> missing_;  // in how many texts, and why
};

}  // namespace infer
