// A vector of each token, from the states of texts.
#pragma once

#include <span>
#include <vector>

#include "outputs/texts.h"

namespace phasor::internal {

/// As the public one.
std::vector<float> maxsim(std::span<const float> query, const TokenRows& documents, bool mean,
                          const Threads& threads);

/// Makes token vectors of the states of texts, or keeps the states.
class TokenHead {
 public:
  /// Borrows the model's config. Without one the vectors are the states.
  TokenHead(const Runner& runner, int64_t num_texts, const TokenVectorConfig* config = nullptr,
            bool is_query = false);
  void take(const TextStates& batch);
  /// When all are taken: the texts' vectors end to end.
  TokenRows finish();

 private:
  struct Part {  // of a text
    std::vector<float> values;
    std::vector<int32_t> ids;
    std::vector<TextSpan> spans;
  };

  /// The vector of token t of a batch.
  void add(const TextStates& batch, int64_t t, std::span<const float> rows, Part& part) const;

  const Runner& runner_;
  const TokenVectorConfig* const config_;
  const TokenVectorConfig::Side* const side_;
  const int64_t width_;
  std::vector<Part> parts_;  // [B]
};

}  // namespace phasor::internal
