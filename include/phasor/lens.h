// The lens: numbers that say what position does inside the encoder, from recorded activations.
//
// All functions are pure, compute in double from float32 activations, and throw InvalidArgument
// where shapes do not fit.
#pragma once

#include <cstdint>
#include <span>

namespace phasor {

/// mean_t ‖x_t‖ over the rows of x [T, C].
double mean_norm(std::span<const float> x, int64_t d_model);

/// mean_t (1 − cos(a_t, b_t)) over the rows of a and b [T, C]: 0 where they point the same way, 1
/// at a right angle. With a from a run with positions and b from one without: the effect of
/// positions.
double mean_cosine_distance(std::span<const float> a, std::span<const float> b, int64_t d_model);

/// mean over heads and rows i of Σ_j A_ij·|i − j|, in tokens, for a pattern A [H, T, T].
double mean_attention_distance(std::span<const float> pattern, int64_t num_heads,
                               int64_t num_tokens);

}  // namespace phasor
