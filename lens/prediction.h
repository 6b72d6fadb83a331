// How well masked tokens are predicted, and by which layer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "phasor/encoder.h"

namespace phasor {

/// How a model scores one known token.
struct TokenScore {
  double loss = 0;   // −ln softmax(logits)[token], in nats
  int64_t rank = 0;  // the number of tokens with a higher score; 0: predicted
};

/// One score for each row of logits [n, V] and its token_ids [n]. Throws InvalidArgument if the
/// sizes do not fit or an id is outside the columns.
std::vector<TokenScore> score_tokens(std::span<const float> logits, int64_t vocab_size,
                                     std::span<const int32_t> token_ids);

/// The logit lens (nostalgebraist 2020; Belrose et al. 2023, arXiv 2303.08112): what the
/// masked-language-model head says of states of an earlier layer, as if the blocks after it did
/// nothing. `states` [n, C] are rows of Trace::hidden_state(l), l = 0 … L − 1; the result is logits
/// [n, V], as by Encoder::mlm_logits() for the last layer. The model's final norm, if it has one,
/// is applied first; the last hidden state has passed it already. Throws InvalidArgument for states
/// of another width, and what mlm_logits() throws.
std::vector<float> logit_lens(const Encoder& encoder, std::span<const float> states);

}  // namespace phasor
