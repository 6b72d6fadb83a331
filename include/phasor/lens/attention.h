// Position in attention: how far, and to which side, attention reaches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace phasor {

/// mean over heads and rows i of Σ_j A_ij·|i − j|, in tokens, for a pattern A [H, T, T].
double mean_attention_distance(std::span<const float> pattern, int64_t num_heads,
                               int64_t num_tokens);

/// The share of attention that goes to the token δ places to the right,
///
///     a(δ) = (1/(H·T)) Σ_h Σ_i A^h_{i,i+δ},   δ = −(T−1) … T−1,   at index δ + T − 1: [2T − 1].
///
/// Rows i for which i + δ lies outside the text add nothing but count, so Σ_δ a(δ) = 1 and
/// Σ_δ a(δ)·|δ| is the mean distance. For one head, give its part of the pattern. Clark et al. 2019
/// (arXiv 1906.04341), §3.1, name heads by the peaks at δ = −1, 0 and 1.
std::vector<double> attention_by_offset(std::span<const float> pattern, int64_t num_heads,
                                        int64_t num_tokens);

}  // namespace phasor
