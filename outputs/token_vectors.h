// A vector of each token, from the states of texts.
#pragma once

#include <span>
#include <vector>

#include "outputs/embed.h"
#include "phasor/encoder.h"

namespace phasor::internal {

/// Makes token vectors of the states of texts.
class TokenVectorHead {
 public:
  /// Borrows the model. `project`: [n, C] → [n, E].
  TokenVectorHead(const Model& model, const Threads& threads, int64_t num_texts, bool is_query,
                  HeadOfStates project);
  void take(const TextStates& batch);
  /// When all are taken: the texts' vectors end to end.
  TokenVectors finish(std::vector<TextReport> reports);

 private:
  struct Part {  // of a text
    std::vector<float> values;
    std::vector<int32_t> token_ids;
    std::vector<TextSpan> spans;
  };

  /// The vector of token t of a batch.
  void add(const TextStates& batch, int64_t t, std::span<const float> rows, Part& part) const;

  const TokenVectorConfig& config_;
  const TokenVectorConfig::Side& side_;
  const Threads threads_;
  const HeadOfStates project_;
  std::vector<Part> parts_;  // [B]
  TokenVectors result_;
};

}  // namespace phasor::internal
