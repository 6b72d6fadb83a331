// Means over many texts of what is known of their layers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "infer/observed.h"

namespace infer {

/// Every token of every text counts as much as any other.
class LayerMeans {
 public:
  /// All texts must have the same number of layers.
  void add(const Observed& text);

  int64_t texts() const { return texts_; }
  int64_t tokens() const { return tokens_; }
  int64_t reordered_texts() const { return reordered_texts_; }  // those with two tokens to reorder
  /// [L + 1]; a number that some texts do not have is the mean over the others.
  std::vector<ObservedLayer> layers() const;
  /// What no text has an answer to, and why the last of them has none.
  std::map<Measure, std::string> missing() const;

 private:
  struct Sum {
    double sum = 0, weight = 0;
  };
  int64_t texts_ = 0, tokens_ = 0, reordered_texts_ = 0;
  std::vector<ObservedLayer> layers_;             // has every number that some text has
  std::vector<std::map<std::string, Sum>> sums_;  // [L + 1], by name
  std::map<Measure, std::pair<int64_t, std::string>> missing_;  // in how many texts, and why
};

}  // namespace infer
