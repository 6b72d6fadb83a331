// Hidden states split into what the position alone and what the token (or the text) alone decides.
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
// position share says that states tell where they stand whatever stands there; a large group share,
// that they tell what stands there wherever; a large rest, that the two were mixed. States drawn at
// random score (P − 1)/(PG − 1), (G − 1)/(PG − 1), and the rest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "phasor/encoder.h"
#include "phasor/progress.h"

namespace [[gnu::visibility("default")]] phasor {

struct Split {
  /// Shares of Σ‖h − μ‖². What is no more than 1e-12 of Σ‖h‖² is float32's rounding: where the
  /// whole sum is, all are 0; where the position's or the group's term is, its share and its means
  /// are.
  double position = 0, group = 0, rest = 0;
  double variance = 0;                 // mean ‖h − μ‖²
  std::vector<double> mean;            // μ, [C]
  std::vector<double> position_means;  // pos, [P, C]; see also stable_rank() in table.h
  std::vector<double> group_means;     // grp, [G, C]
};

/// Takes states one by one, in memory for P + G of them. The same order gives the same bits.
class TwoWaySplit {
 public:
  /// Throws InvalidArgument for a size below 1.
  TwoWaySplit(int64_t num_positions, int64_t num_groups, int64_t d_model);

  /// The `state` [C] of a pair. Throws InvalidArgument for a pair out of range, one that was added
  /// before, or another width.
  void add(int64_t position, int64_t group, std::span<const float> state);

  /// Throws InvalidArgument where pairs are missing.
  Split result() const;

 private:
  int64_t num_positions_, num_groups_, d_model_;
  int64_t count_ = 0;                  // of the pairs added
  std::vector<bool> added_;            // [P, G]
  std::vector<double> origin_;         // [C], the first state: sums of differences cancel less
  std::vector<double> position_sums_;  // [P, C], of h − origin
  std::vector<double> group_sums_;     // [G, C]
  double moved_squares_ = 0;           // Σ‖h − origin‖²
  double squares_ = 0;                 // Σ‖h‖²
};

/// The split of one text by position and token, from its n cyclic rotations: in rotation r the
/// token at movable[(i + r) mod n] stands at movable[i], so that every movable token visits every
/// movable place once (a Latin square); all other tokens (special ones, say) stay. Position p and
/// group g count movable places: P = G = n. Returns the split of each hidden_states[l], l = 0 … L.
///
/// At l = 0, without a LayerNorm of the embedding, rest is 0, pos_p the position's vector and grp_g
/// the token's, both less their means. Without positions, position is 0 at every layer, for a
/// permuted input gives the permuted output; equal tokens have no group share. States drawn at
/// random score 1/(n + 1), 1/(n + 1) and the rest.
///
/// Runs n sequences in packed batches of about 4096 tokens; `options.observer` is not used.
/// `movable` is ascending. Throws InvalidArgument where it is empty, twice has the same place or
/// one outside the text, or where the run cuts the text off; and what Encoder::encode_ids throws.
std::vector<Split> latin_square_split(Encoder& encoder, std::span<const int32_t> token_ids,
                                      std::span<const int64_t> movable,
                                      const RunOptions& options = {},
                                      const Progress& progress = {});

/// The split of many texts of equal length by position and context, g being the text, over the
/// places that are listed (Song & Zhong 2023, arXiv 2310.04861). What a token says and how its text
/// mixed it are both in the rest here. Longer texts must be cut and shorter ones left out before.
/// Throws as above, and where the lengths differ.
std::vector<Split> corpus_split(Encoder& encoder, std::span<const std::vector<int32_t>> sequences,
                                std::span<const int64_t> places, const RunOptions& options = {},
                                const Progress& progress = {});

/// How slowly the rows of a table [P, C] change from each to the next: the share of its variance in
/// the lowest quarter of frequencies,
///
///     Σ_{k=1}^{K} ‖P̂_k‖² / Σ_{k=1}^{P−1} ‖P̂_k‖²,   K = ⌈(P − 1)/4⌉,
///
/// where P̂ is the orthonormal discrete cosine transform (DCT-II) of its columns; k = 0, the mean,
/// is left out. Near 1 where position is a smooth curve, K/(P − 1) for random rows, 0 where all
/// rows are equal (columns that are rounding count as constant, see table.h). After the same
/// source, which finds position_means() smooth and of low rank.
double smoothness(std::span<const double> table, int64_t d_model);

/// mean_{p,g} |cos(pos_p, grp_g)|, rows of no length left out: how far position and group share
/// directions. 0 where they lie in subspaces at right angles, so that each can be read without the
/// other; √(2/(πC)) for random directions; 0 without positions. After the incoherence of the same
/// source.
double position_group_cosine(const Split& split);

}  // namespace phasor
