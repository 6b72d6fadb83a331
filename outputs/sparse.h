// Weights of pieces, from the states of texts or from a table.
#pragma once

#include <span>
#include <stop_token>
#include <vector>

#include "outputs/embed.h"
#include "phasor/encoder.h"

namespace phasor::internal {

/// Makes sparse vectors of the states of texts.
class SparseHead {
 public:
  /// Borrows the model. `logits`: [n, C] → [n, V].
  SparseHead(const Model& model, const Threads& threads, int64_t num_texts,
             const RetrievalOptions& options, HeadOfStates logits);
  void take(const TextStates& batch);
  /// When all are taken.
  SparseVectors finish(std::vector<TextReport> reports);

 private:
  void by_scores(const TextStates& batch);
  void by_tokens(const TextStates& batch);

  const SparseConfig& config_;
  const int64_t width_;  // C
  const Threads threads_;
  const std::stop_token stop_;
  const HeadOfStates logits_;
  std::vector<int32_t> weightless_;
  SparseVectors result_;
};

/// Queries' pieces have the weights of a table, SparseConfig::query_weights; nothing runs.
SparseVectors look_up(const Model& model, const Threads& threads, const EmbedInput& input,
                      const RetrievalOptions& options);

}  // namespace phasor::internal
