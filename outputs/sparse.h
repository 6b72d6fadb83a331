// Weights of pieces, from the states of texts or from a table.
#pragma once

#include <span>
#include <stop_token>
#include <vector>

#include "outputs/texts.h"

namespace phasor::internal {

/// Pieces of a text and their weights, of which none is 0, in rising order of ids.
using PieceWeights = std::vector<std::pair<int32_t, float>>;

/// Makes sparse vectors of the states of texts.
class SparseHead {
 public:
  SparseHead(const Runner& runner, int64_t num_texts, std::stop_token stop);
  void take(const TextStates& batch);
  /// When all are taken.
  SparseRows finish();

 private:
  void by_scores(const TextStates& batch);
  void by_tokens(const TextStates& batch);

  const Runner& runner_;
  const SparseConfig& config_;
  const int64_t width_, vocab_size_;  // C, V
  const std::stop_token stop_;
  std::vector<int32_t> weightless_;
  std::vector<PieceWeights> weights_;  // [B]
};

/// Queries' pieces have the weights of a table, SparseConfig::query_weights; nothing runs.
Vectors look_up(const Runner& runner, std::span<const std::string_view> texts,
                const TextOptions& options, const TextTask& task);

}  // namespace phasor::internal
