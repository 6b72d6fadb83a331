// What positions do to a layer's attention scores, as a function of the offset d = j − i from query
// i to key j.
//
// A score is s·⟨q_i, k_j⟩, with the engine's scale s (1/√D, or 1 in T5), and what positions make of
// it. Each kind has its own term, in the unit of the scores:
//
//     bias                 b_d: T5's buckets, ALiBi; the same for every pair of tokens
//     rotation             s·⟨q_i, (R_d − 1)k_j⟩, where R_d turns by the angles of d positions: a
//                          rotated score less the same without rotation
//     content to position  s·⟨q_i, K_r⟩, with r the bucket of −d = i − j (DeBERTa)
//     position to content  s·⟨k_j, Q_r⟩
//
// The last three depend on the tokens. They are given as mean and standard deviation over all pairs
// of a text's tokens, whatever these tokens' own offset: what an offset does is kept apart from
// which tokens happen to stand at it. A mean curve with small deviations is a bias by offset that
// was learned without being one (Press et al. 2022, arXiv 2108.12409, and Chi et al. 2022, arXiv
// 2205.09921, compare positions by such curves).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "phasor/model.h"
#include "phasor/positions.h"
#include "phasor/trace.h"

namespace phasor {

/// A number for each offset −K … K; empty: there is no such term. NaN: there is no such pair, as
/// beyond a local window.
struct OffsetCurve {
  std::vector<double> mean;       // [2K + 1]
  std::vector<double> deviation;  // [2K + 1], the standard deviation
};

/// What positions do to the scores of one head.
struct OffsetEffect {
  OffsetCurve bias, rotation, content_to_position, position_to_content;
};

/// The effects of the offsets −farthest … farthest in a layer (from 0) of a recorded run, [H].
/// `trace` holds kQ and kK of that layer, and `positions` are those of the run. Throws
/// InvalidArgument for a negative `farthest`, a layer that the model does not have, or a trace that
/// lacks the hooks or is from another model.
std::vector<OffsetEffect> offset_effects(const Model& model, const Trace& trace, int64_t layer,
                                         int64_t farthest, const Positions& positions = {},
                                         int64_t sequence = 0);

/// The mean and deviation of numbers of pairs, [T, T], over the pairs of each offset p_j − p_i,
/// rounded to a whole number: such as a head's position · position term in ScoreTerms. −∞ is left
/// out. Throws InvalidArgument if the sizes do not fit or `farthest` is negative.
OffsetCurve by_offset(std::span<const double> pairs, std::span<const float> positions,
                      int64_t farthest);

}  // namespace phasor
