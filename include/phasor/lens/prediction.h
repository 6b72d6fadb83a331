// How well masked tokens are predicted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace [[gnu::visibility("default")]] phasor {

/// How a model scores one known token.
struct TokenScore {
  double loss = 0;   // −ln softmax(logits)[token], in nats
  int64_t rank = 0;  // the number of tokens with a higher score; 0: predicted
};

/// One score for each row of logits [n, V] and its token_ids [n]. Throws InvalidArgument if the
/// sizes do not fit or an id is outside the columns.
std::vector<TokenScore> score_tokens(std::span<const float> logits, int64_t vocab_size,
                                     std::span<const int32_t> token_ids);

}  // namespace phasor
