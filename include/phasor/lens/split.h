// The variance of hidden states split into position, token, both together, and context; or, of many
// texts, into position, text, and the rest.
//
// A Split is a two-way analysis of variance without replication. Of states h_{p,g} ∈ R^C, one for
// each position p = 1 … P and each group g = 1 … G (a text), with means over all (μ), over groups
// and over positions,
//
//     h_{p,g} = μ + pos_p + grp_g + rest_{p,g},   pos_p = mean_g h_{p,g} − μ,
//                                                 grp_g = mean_p h_{p,g} − μ,
//     Σ‖h_{p,g} − μ‖² = G Σ_p ‖pos_p‖² + P Σ_g ‖grp_g‖² + Σ‖rest_{p,g}‖²   (Pythagoras),
//
// and the three shares are the terms on the right divided by the left: they sum to 1. A large
// position share means that states depend on the place, whatever the token; a large group share,
// that they depend on the text, wherever in it; a large rest, that they depend on both together, or
// on what differs between the states of a pair. Random states score (P − 1)/(PG − 1),
// (G − 1)/(PG − 1), and the rest.
//
// A TokenSplit has several states of each pair of a place and a token, each among other neighbours,
// and so tells what depends on the pair (an interaction) from what depends on the neighbours. One
// Latin square, such as all rotations of a text, cannot: a token keeps its neighbours in it, and
// what they do counts as the token's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "phasor/encoder.h"
#include "phasor/hooks.h"
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

/// The shares and means of the split of one text by place and token, from several Latin squares.
struct TokenSplit {
  /// Shares of E‖h − μ‖²; they sum to 1. Each term is estimated without bias, so position, token
  /// and both may come out slightly below 0; context, a variance, does not. If E‖h − μ‖²
  /// is at most 1e-12 of E‖h‖², which is float32's rounding, all are 0; a term of position or token
  /// that small in every square is 0, and so are its means; so is such a context.
  double position = 0, token = 0, both = 0, context = 0;
  double variance = 0;                 // E‖h − μ‖²
  std::vector<double> mean;            // μ, [C]
  std::vector<double> position_means;  // pos, [n, C], over all squares
  std::vector<double> token_means;     // tok, [n, C], over all squares
  /// E ‖pos_p‖², whose mean is the term of position; estimated without bias, too. [n]
  std::vector<double> position_squares;
};

/// A two-way analysis of variance with replication: takes the states of S Latin squares one by one,
/// square after square. With ⟨x, x⟩* the mean of ⟨x^s, x^s'⟩ over pairs of different squares s ≠
/// s', which is ‖E x‖² on average where squares are independent, and h_{p,g}^s the state of token g
/// at place p in square s, M^s, P_p^s and T_g^s the means of a square, of its place and of its
/// token,
///
///     E‖h − μ‖²        = mean ‖h‖² − ⟨M, M⟩*,
///     position         = mean_p ⟨P_p − M, P_p − M⟩*,
///     token            = mean_g ⟨T_g − M, T_g − M⟩*,
///     context          = mean ‖h‖² − mean_{p,g} ⟨h_{p,g}, h_{p,g}⟩*,
///     position × token = E‖h − μ‖² − position − token − context.
///
/// context is the variance within a cell (p, g), from square to square. Memory, in doubles: 4n·C
/// and a row [C] for each cell that is kept. The same order of states gives the same bits.
class LatinSquareSplit {
 public:
  /// Cells (p, g) are kept where (g − p) mod n is one of `diagonals`, each of 0 … n − 1; empty: all
  /// are. context is the mean over these cells, in which each place and each token is as frequent
  /// as any other; drawn at random, they give all cells' context on average. Throws InvalidArgument
  /// for a size below 1, and for diagonals out of range or given twice.
  LatinSquareSplit(int64_t n, int64_t d_model, std::span<const int64_t> diagonals = {});

  /// The `state` [C] of a token at a place, both 0 … n − 1. The first n² states are the first
  /// square, and so on. Throws as TwoWaySplit::add().
  void add(int64_t place, int64_t token, std::span<const float> state);

  /// Throws InvalidArgument if a square is incomplete, or with fewer than two squares.
  TokenSplit result() const;

 private:
  void end_square();

  int64_t n_, d_model_;
  std::vector<int64_t> kept_;  // of each diagonal: its number among those kept, or −1
  int64_t num_kept_ = 0;       // diagonals
  TwoWaySplit square_;         // the current one
  int64_t count_ = 0;          // states added to it
  int64_t num_squares_ = 0;    // complete
  std::vector<double> cells_;  // Σ_s h, [kept, n, C]
  double cell_squares_ = 0;    // Σ_s ‖h‖² over these cells
  double variances_ = 0;       // Σ_s mean ‖h − M‖²
  struct Sums {
    std::vector<double> rows;     // Σ_s x
    std::vector<double> squares;  // Σ_s ‖x‖², of each row
    void add(const std::vector<double>& x, int64_t d_model);
    std::vector<double> products(int64_t num_squares) const;  // ⟨x, x⟩*, of each row
    double product(int64_t num_squares) const;                // their sum
  };
  Sums means_, positions_, tokens_;  // of M, P − M and T − M
};

/// The split of one text by place and token. Its n movable tokens are put into `num_squares` random
/// Latin squares: square s draws a permutation π of them from `seed` and runs its n rotations; in
/// rotation r token π[(p + r) mod n] stands at movable[p]. So in every square each token is at each
/// place once, and its neighbours differ from square to square; all other tokens (such as special
/// ones) stay. Place p and token g count movable places of the text: token g is the one that stands
/// at movable[g], and equal tokens are different g with equal means. Returns the split of each
/// hidden_states[l], l = 0 … L.
///
///     h = μ + pos_p + tok_g + both_{p,g} + context
///
/// over all n! orders: pos_p and tok_g are the means at a place and of a token, both_{p,g} what is
/// left of the mean of a token at a place, and context what the order of the other tokens does to
/// the same token at the same place. With two tokens the place of one decides that of the other: no
/// context can be told from `both`, and it is 0. With one, all shares are 0.
///
/// At l = 0 context is 0. Without a LayerNorm of the embedding both is 0 too, pos_p is
/// the position's vector and tok_g the token's, both less their means. Without positions token is 1
/// at every layer, because a permuted input gives the permuted output; of equal tokens token is 0.
/// Random states score 0, 0, 0 and 1.
///
/// Runs num_squares·n sequences in packed batches of about 4096 tokens; `options.observer` is not
/// used. Where the sums of all n² cells would take more than 64 MiB in all layers together, so many
/// diagonals as take no more (at least one) are drawn from `seed`, see LatinSquareSplit. `movable`
/// is ascending. Throws InvalidArgument if it is empty, or has a place twice or outside the text,
/// for fewer than two squares, or if the run truncates the text; and what Encoder::encode_ids()
/// throws.
std::vector<TokenSplit> latin_square_split(const Encoder& encoder,
                                           std::span<const int32_t> token_ids,
                                           std::span<const int64_t> movable,
                                           const RunOptions& options = {}, int64_t num_squares = 8,
                                           uint64_t seed = 1, const Progress& progress = {});

/// The position components of what blocks have at hooks, in the orders of latin_square_split(): of
/// each hook and layer the mean of the values at a movable place over all runs, less the mean over
/// these places, [hooks][L] of [n, C]. Those of Hook::kResidPre are the position_means of
/// hidden_states[l]; those of kAttnOut or kMlpOut, what attention or the MLP writes at a place
/// whatever the tokens.
///
/// Arguments and errors are those of latin_square_split(). Throws InvalidArgument for a hook that
/// is not a block's or whose values are not rows [T, C].
std::vector<std::vector<std::vector<double>>> position_components(
    const Encoder& encoder, std::span<const int32_t> token_ids, std::span<const int64_t> movable,
    std::span<const Hook> hooks, const RunOptions& options = {}, int64_t num_squares = 8,
    uint64_t seed = 1);

/// The split of many texts of equal length by position and context, g being the text, over the
/// given places (Song & Zhong 2023, arXiv 2310.04861). Here the rest holds both the token itself
/// and its mixing with the text. Cut longer texts and leave out shorter ones beforehand. Throws
/// what latin_square_split() throws for places and runs, and if the lengths differ.
std::vector<Split> corpus_split(const Encoder& encoder,
                                std::span<const std::vector<int32_t>> sequences,
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
/// source, which finds position_means smooth and of low rank.
double smoothness(std::span<const double> table, int64_t d_model);

/// mean_{p,g} |cos(pos_p, grp_g)| of position means [P, C] and group (or token) means [G, C],
/// without rows of length zero: how far position and group share directions. 0 if they lie in
/// orthogonal subspaces, so that each can be read without the other; √(2/(πC)) for random
/// directions; 0 without positions. After the incoherence of the same source.
double position_group_cosine(std::span<const double> position_means,
                             std::span<const double> group_means, int64_t d_model);

}  // namespace phasor
