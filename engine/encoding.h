// An Encoding, filled during a run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/batch.h"
#include "phasor/run.h"

namespace phasor::internal {

/// Throws std::out_of_range, which names `what`, where i is not 0 … count − 1.
void check_index(int64_t i, int64_t count, const char* what);

/// Collects the results of a run: the rows of all segments, then one row for each token.
class EncodingParts {
 public:
  /// `output`: the caller's memory for the hidden states, or empty. Throws InvalidArgument if its
  /// size is wrong.
  EncodingParts(const std::vector<Segment>& segments, int64_t d_model, std::span<float> output);

  /// Memory for the hidden states of all segments, end to end.
  std::span<float> rows() { return rows_; }
  /// Averages windows where they overlap.
  Encoding finish();

 private:
  const std::vector<Segment>& segments_;
  Encoding encoding_;
  std::span<float> hidden_;         // [N, C]: the Encoding's or the caller's
  std::vector<float> window_rows_;  // if windows overlap
  std::span<float> rows_;
};

}  // namespace phasor::internal
