// How well masked tokens are predicted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace [[gnu::visibility("default")]] phasor {

/// What a model's scores say about one token that is known.
struct TokenScore {
  double loss = 0;   // −ln softmax(logits)[token], in nats
  int64_t rank = 0;  // how many tokens have a higher score; 0: predicted
};

/// One score for each row of logits [n, V] and its token_ids [n]. Throws InvalidArgument where the
/// sizes do not fit or an id is no column.
std::vector<TokenScore> score_tokens(std::span<const float> logits, int64_t vocab_size,
                                     std::span<const int32_t> token_ids);

}  // namespace phasor
