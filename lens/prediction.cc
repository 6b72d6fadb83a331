// Cross-entropy and ranks, row by row.

#include "phasor/lens/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "phasor/errors.h"

namespace phasor {
namespace {

TokenScore score(std::span<const float> logits, int32_t token_id) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  TokenScore result;
  for (const float logit : logits) {
    sum += std::exp(logit - highest);
    if (logit > logits[token_id]) ++result.rank;
  }
  result.loss = highest + std::log(sum) - logits[token_id];
  return result;
}

}  // namespace

std::vector<TokenScore> score_tokens(std::span<const float> logits, int64_t vocab_size,
                                     std::span<const int32_t> token_ids) {
  if (vocab_size < 1 || std::ssize(logits) / vocab_size != std::ssize(token_ids) ||
      std::ssize(logits) % vocab_size != 0) {
    throw InvalidArgument(
        fmt::format("{} logits are no {} rows of {}", logits.size(), token_ids.size(), vocab_size));
  }
  std::vector<TokenScore> scores;
  for (size_t n = 0; n < token_ids.size(); ++n) {
    if (token_ids[n] < 0 || token_ids[n] >= vocab_size) {
      throw InvalidArgument(
          fmt::format("token id {} is outside the vocabulary; ids run from 0 to {}", token_ids[n],
                      vocab_size - 1));
    }
    scores.push_back(score(logits.subspan(n * vocab_size, vocab_size), token_ids[n]));
  }
  return scores;
}

}  // namespace phasor
