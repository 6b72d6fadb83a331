// The first block's attention scores as a sum of the terms of tokens and positions.
//
// Block 0 reads x_i = tok_i + pos_i + other_i, the parts of hidden_states[0] with frozen norms (see
// residual.h), and in pre-norm models its attention's norm, frozen too. With q_i = W_q x_i + b_q,
// k_j = W_k x_j + b_k and the engine's scale s (1/√D, or 1 in T5), a head's score is
//
//     score_ij = s·⟨W_q tok_i, W_k tok_j⟩   token · token
//              + s·⟨W_q tok_i, W_k pos_j⟩   token · position
//              + s·⟨W_q pos_i, W_k tok_j⟩   position · token
//              + s·⟨W_q pos_i, W_k pos_j⟩   position · position
//              + rest: all with b_q, b_k, type rows or the norms' biases
//              + relative bias: score_ij − s·⟨q_i, k_j⟩, what positions do within attention: the
//                biases of T5 and ALiBi, DeBERTa's terms, and the difference that rotating q_i and
//                k_j makes. relative.h has it by offset.
//
// Ke, He & Liu 2020, "Rethinking Positional Encoding in Language Pre-training" (arXiv 2006.15595),
// who find hardly any structure in the two mixed terms in BERT.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "phasor/model.h"
#include "phasor/trace.h"

namespace [[gnu::visibility("default")]] phasor {

/// The terms that scores.h defines, each [H, T, T]; they sum to the scores. Beyond a local window
/// the scores and the relative bias are −∞.
struct ScoreTerms {
  int64_t num_heads = 0;
  int64_t num_tokens = 0;
  std::vector<double> token_token, token_position, position_token, position_position;
  std::vector<double> relative_bias;  // 0 where positions do nothing within attention
  std::vector<double> rest;
};

/// The share of a term in the scores' variance,
///
///     Σ_ij (t_ij − t̄_i)(s_ij − s̄_i) / Σ_ij (s_ij − s̄_i)²
///
/// for a term t, the scores s, and means over each row, which softmax ignores; all of pairs within
/// the local window, if there is one. The six shares sum
/// to 1. Near 1: the term decides where attention goes; near 0: it has no influence; below 0: it
/// works against the others. All are 0 if the scores do not vary along their rows: by less than
/// 1e-12 of Σ s_ij², which is float32's rounding.
struct ScoreShares {
  double token_token = 0, token_position = 0, position_token = 0, position_position = 0;
  double relative_bias = 0;
  double rest = 0;
};

/// Records what the terms are computed from: the embedding's hooks, and of block 0 kQ, kK and
/// kAttnScores.
class ScoreTrace : public Trace {
 public:
  ScoreTrace();
  bool wants(Hook hook, int64_t layer) const override;
};

/// The terms of `sequence` of a recorded float32 run of `model` with `positions`. They sum to the
/// values of Hook::kAttnScores up to float32's rounding. Takes 48·H·T² bytes. Throws
/// InvalidArgument if the trace does not hold a ScoreTrace's hooks or is from another model. The
/// scores of sequences run in overlapping windows are means of several runs, and the terms do not
/// sum to them.
ScoreTerms first_layer_scores(const Model& model, const Trace& trace,
                              const Positions& positions = {}, int64_t sequence = 0);

/// For one head.
ScoreShares score_shares(const ScoreTerms& terms, int64_t head);
/// For all heads together, each weighted by its scores' variance.
ScoreShares score_shares(const ScoreTerms& terms);

}  // namespace phasor
