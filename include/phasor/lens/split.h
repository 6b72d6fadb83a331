// The variance of hidden states split into position, token (or text), and both mixed.
//
// A split is a two-way analysis of variance without replication. Of states h_{p,g} ∈ R^C, one for
// each position p = 1 … P and each group g = 1 … G (a token, a text), with means over all (μ), over
// groups and over positions,
//
//     h_{p,g} = μ + pos_p + grp_g + rest_{p,g},   pos_p = mean_g h_{p,g} − μ,
//                                                 grp_g = mean_p h_{p,g} − μ,
//     Σ‖h_{p,g} − μ‖² = G Σ_p ‖pos_p‖² + P Σ_g ‖grp_g‖² + Σ‖rest_{p,g}‖²   (Pythagoras),
//
// and the three shares are the terms on the right divided by the left: they sum to 1. A large
// position share means that states depend on the place, whatever the token; a large group share,
// that they depend on the token (or text), wherever it is; a large rest, that they depend on both
// together. Random states score (P − 1)/(PG − 1), (G − 1)/(PG − 1), and the rest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "phasor/encoder.h"
#include "phasor/progress.h"

namespace [[gnu::visibility("default")]] phasor {

/// The shares and means of one split.
struct Split {
  /// Shares of Σ‖h − μ‖². A term of at most 1e-12 of Σ‖h‖² is float32's rounding: if the whole sum
  /// is, all are 0; if the term of position or group is, its share and its means are 0.
  double position = 0, group = 0, rest = 0;
  double variance = 0;                 // mean ‖h − μ‖²
  std::vector<double> mean;            // μ, [C]
  std::vector<double> position_means;  // pos, [P, C]; see also stable_rank() in table.h
  std::vector<double> group_means;     // grp, [G, C]
};

/// Takes states one by one, with memory for P + G of them. The same order gives the same bits.
class TwoWaySplit {
 public:
  /// Throws InvalidArgument for a size below 1.
  TwoWaySplit(int64_t num_positions, int64_t num_groups, int64_t d_model);

  /// The `state` [C] of a pair. Throws InvalidArgument for a pair out of range or added before, or
  /// for another width.
  void add(int64_t position, int64_t group, std::span<const float> state);

  /// Throws InvalidArgument if pairs are missing.
  Split result() const;

 private:
  int64_t num_positions_, num_groups_, d_model_;
  int64_t count_ = 0;                  // pairs added
  std::vector<bool> added_;            // [P, G]
  std::vector<double> origin_;         // [C], the first state: sums of differences cancel less
  std::vector<double> position_sums_;  // [P, C], of h − origin
  std::vector<double> group_sums_;     // [G, C]
  double moved_squares_ = 0;           // Σ‖h − origin‖²
  double squares_ = 0;                 // Σ‖h‖²
};

/// The split of one text by position and token, from its n cyclic rotations: in rotation r the
/// token at movable[(i + r) mod n] stands at movable[i], so that every movable token is at every
/// movable place once (a Latin square); all other tokens (such as special ones) stay. Position p
/// and group g count movable places: P = G = n. Returns the split of each hidden_states[l], l = 0 …
/// L.
///
/// At l = 0, without a LayerNorm of the embedding, rest is 0, pos_p the position's vector and grp_g
/// the token's, both less their means. Without positions, position is 0 at every layer, because a
/// permuted input gives the permuted output; equal tokens have no group share. Random states score
/// 1/(n + 1), 1/(n + 1) and the rest.
///
/// Runs n sequences in packed batches of about 4096 tokens; `options.observer` is not used.
/// `movable` is ascending. Throws InvalidArgument if it is empty, or has a place twice or outside
/// the text, or if the run truncates the text; and what Encoder::encode_ids() throws.
std::vector<Split> latin_square_split(Encoder& encoder, std::span<const int32_t> token_ids,
                                      std::span<const int64_t> movable,
                                      const RunOptions& options = {},
                                      const Progress& progress = {});

/// The split of many texts of equal length by position and context, g being the text, over the
/// given places (Song & Zhong 2023, arXiv 2310.04861). Here the rest holds both the token itself
/// and its mixing with the text. Cut longer texts and leave out shorter ones beforehand. Throws
/// what latin_square_split() throws, and if the lengths differ.
std::vector<Split> corpus_split(Encoder& encoder, std::span<const std::vector<int32_t>> sequences,
                                std::span<const int64_t> places, const RunOptions& options = {},
                                const Progress& progress = {});

/// How smoothly the rows of a table [P, C] change from one to the next: the share of its variance
/// in the lowest quarter of frequencies,
///
///     Σ_{k=1}^{K} ‖P̂_k‖² / Σ_{k=1}^{P−1} ‖P̂_k‖²,   K = ⌈(P − 1)/4⌉,
///
/// where P̂ is the orthonormal discrete cosine transform (DCT-II) of its columns; k = 0, the mean,
/// is left out. Near 1 if position is a smooth curve, K/(P − 1) for random rows, 0 if all rows are
/// equal (columns that vary only by rounding count as constant, see table.h). After the same
/// source, which finds position_means() smooth and of low rank.
double smoothness(std::span<const double> table, int64_t d_model);

/// mean_{p,g} |cos(pos_p, grp_g)|, without rows of length zero: how far position and group share
/// directions. 0 if they lie in orthogonal subspaces, so that each can be read without the other;
/// √(2/(πC)) for random directions; 0 without positions. After the incoherence of the same source.
double position_group_cosine(const Split& split);

}  // namespace phasor
