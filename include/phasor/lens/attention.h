// Position in attention: how far away, and to which side, the heads look, and how far that brings
// information.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace [[gnu::visibility("default")]] phasor {

/// mean over heads and rows i of Σ_j A_ij·|i − j|, in tokens, for a pattern A [H, T, T].
double mean_attention_distance(std::span<const float> pattern, int64_t num_heads,
                               int64_t num_tokens);

/// The mean weight of the token δ places to the right, over the T − |δ| rows that have one,
///
///     a(δ) = (1/(H·(T − |δ|))) Σ_h Σ_i A^h_{i,i+δ},   δ = 1 − T … T − 1,   at index δ + T − 1:
///
/// [2T − 1]. A head that reads nothing but the previous token has a(−1) = 1, a uniform one 1/T
/// everywhere; Σ_δ a(δ)·(T − |δ|)/T = 1. For one head, pass its part of the pattern. Clark et al.
/// 2019 (arXiv 1906.04341), §3.1, name heads by the peaks at δ = −1, 0 and 1.
std::vector<double> attention_by_offset(std::span<const float> pattern, int64_t num_heads,
                                        int64_t num_tokens);

/// What one head's pattern A [T, T] does with position. All but the entropies are shares of
/// attention or of rows, between 0 and 1.
struct HeadProfile {
  std::vector<double> by_offset;  // a(δ) of attention_by_offset(), [2T − 1]
  double previous = 0;            // a(−1); 0 if T = 1, as next
  double self = 0;                // a(0)
  double next = 0;                // a(1)
  double first = 0;               // mean_i A_i0; attention often rests on special tokens
  double special = 0;             // mean_i Σ_s A_is over the given places s
  /// previous and next among all other tokens: of the rows i where neither i nor its neighbour n is
  /// special, mean_i A_in / Σ_j A_ij over all j that are not. 0 if there is no such row.
  double text_previous = 0, text_next = 0;
  double mean_distance = 0;  // in tokens; (T² − 1)/(3T) if attention is uniform
  double entropy = 0;        // mean_i −Σ_j A_ij ln A_ij, in nats: 0 (one token) to ln T (all)
  double entropy_share = 0;  // entropy / ln T; 0 if T = 1
  /// −1 or +1 if that neighbour gets more attention than any other token from at least 90 % of the
  /// rows that have it: a positional head (Voita et al. 2019, arXiv 1905.09418). A head that
  /// attends at random to T tokens is positional by chance with a probability near T^(1−T), so
  /// texts of fewer than three tokens have none.
  std::optional<int> positional_offset = {};
  /// The larger of the two shares of rows; 0 if T = 1.
  double positional_share = 0;
};

/// The profile of each head of a pattern [H, T, T], as in Hook::kPattern. `special` lists the
/// places whose attention is summed, such as those of [CLS] and [SEP] (Clark et al. 2019, §3.2).
/// Throws InvalidArgument if the pattern does not have that shape or a place is outside the text.
///
/// Profiles of the pattern of one word repeated show the effect of position alone.
std::vector<HeadProfile> head_profiles(std::span<const float> pattern, int64_t num_heads,
                                       int64_t num_tokens, std::span<const int64_t> special = {});

}  // namespace phasor
