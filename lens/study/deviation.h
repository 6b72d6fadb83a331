// How far states are from those of a reference: what a lower precision costs.
#pragma once

#include <cstdint>
#include <span>

namespace phasor::internal {

/// Of one hidden state, over all tokens of all texts.
class Deviation {
 public:
  /// got and want [T, C]: the same tokens' states, and those of the reference.
  void add(std::span<const float> got, std::span<const float> want, int64_t d_model);

  /// The largest |got − want|; NaN where one was met.
  double max_diff() const { return max_diff_; }
  /// ‖got − want‖ / ‖want‖, all values as one vector.
  double relative_error() const;
  /// Of a token's state with its reference: the mean, and the least of all tokens; 1 where there
  /// are none.
  double mean_cosine() const;
  double least_cosine() const { return least_cosine_; }

 private:
  int64_t tokens_ = 0;
  double max_diff_ = 0;
  double diff_squares_ = 0, want_squares_ = 0;
  double cosines_ = 0;
  double least_cosine_ = 1;
};

}  // namespace phasor::internal
