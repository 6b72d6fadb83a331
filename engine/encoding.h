// The data of an Encoding, filled during a run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/batch.h"
#include "engine/team.h"
#include "phasor/run.h"

namespace phasor::internal {

/// Throws std::out_of_range, which names `what`, where i is not 0 … count − 1.
void check_index(int64_t i, int64_t count, const char* what);

struct EncodingData {
  int64_t d_model = 0;
  std::vector<int64_t> offsets = {0};  // [B + 1]
  std::vector<int32_t> token_ids;      // [N]
  std::vector<float> positions;        // [N]
  std::vector<float> own_hidden;       // [N, C]; empty if the caller gave memory
  std::span<float> hidden;             // [N, C]
  int64_t embedding_width = 0;         // 0: none
  std::vector<float> embeddings;       // [B, embedding_width]
};

/// Collects the results of a run: the rows of all segments, then one row for each token.
class EncodingParts {
 public:
  /// `output`: the caller's memory for the hidden states, or empty. Throws InvalidArgument if its
  /// size is wrong.
  EncodingParts(const std::vector<Segment>& segments, int64_t d_model, std::span<float> output);

  /// Memory for the hidden states of all segments, end to end.
  std::span<float> rows() { return rows_; }
  /// Averages windows where they overlap, then pools on `threads` if `pooling` is given.
  std::shared_ptr<const EncodingData> finish(const std::optional<Pooling>& pooling,
                                             int64_t prompt_tokens, const Threads& threads);

 private:
  const std::vector<Segment>& segments_;
  std::shared_ptr<EncodingData> data_;
  std::vector<float> window_rows_;  // if windows overlap
  std::span<float> rows_;
};

}  // namespace phasor::internal
