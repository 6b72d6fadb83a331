// Position in the residual stream: how far states move, and the parts whose sum they are.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "phasor/encoder.h"
#include "phasor/progress.h"
#include "phasor/trace.h"

namespace [[gnu::visibility("default")]] phasor {

/// mean_t ‖x_t‖ over the rows of x [T, C].
double mean_norm(std::span<const float> x, int64_t d_model);

/// mean_t (1 − cos(a_t, b_t)) over the rows of a and b [T, C]: 0 if they point the same way, 1 at a
/// right angle. With a from a run with positions and b from one without: the effect of positions.
double mean_cosine_distance(std::span<const float> a, std::span<const float> b, int64_t d_model);

/// Where a part of a hidden state comes from.
enum class ResidualSource {
  kToken,      // s·E[id]
  kPosition,   // P[p]
  kTokenType,  // the type row, if the model has one
  kAttention,  // a block's attention output, with its bias
  kMlp,        // a block's MLP output, with its bias
  kBiases,     // the LayerNorms' biases
};

/// One of the parts whose sum is a hidden state.
struct ResidualPart {
  ResidualSource source;
  int64_t layer;               // of kAttention and kMlp; −1 otherwise
  std::vector<double> values;  // [T, C]
  int64_t head = -1;           // of kAttention by head; −1: all of it, or what no head writes
};

/// Records the hooks from which residual parts are computed; with `heads` kZ, too.
Trace residual_trace(bool heads = false);

/// Takes every hidden state of a recorded run apart: calls visit(l, parts) for l = 0 … L with parts
/// whose sum is hidden_states[l] of `sequence`, up to float32's rounding.
///
/// Each part passes separately through the residual connections and the LayerNorms, which are
/// frozen at the mean and deviation of the run. LN(x) = w ⊙ (x − mean(x)) / σ + b is then linear
/// except for b: a part becomes w ⊙ (part − mean(part)) / σ, and b joins kBiases. What a block
/// computes from its input is a new part. So the part kPosition is what remains of the position
/// vector at layer l on the direct path, not computed by any block (Elhage et al. 2021, "A
/// Mathematical Framework for Transformer Circuits"; the frozen LayerNorm as in TransformerLens'
/// apply_ln_to_stack).
///
/// `trace` holds residual_trace()'s hooks from a run of `model` that cut `cuts`. Throws
/// InvalidArgument if it does not. Where it holds kZ, attention is taken apart by head: a part for
/// each, z_h W_O,h, after one for the rest, which is the bias. The states of sequences
/// run in overlapping windows are means of several runs, and the parts do not sum to them.
void for_each_residual_state(
    const Model& model, const Trace& trace, int64_t sequence,
    const std::function<void(int64_t l, std::span<const ResidualPart> parts)>& visit,
    std::span<const ResidualCut> cuts = {});

/// The share of a part D in the states h.
struct PartShare {
  double norm = 0;       // mean_t ‖D_t‖ / ‖h_t‖
  double alignment = 0;  // mean_t ⟨D_t, h_t⟩ / ‖h_t‖²; sums to 1 over the parts of h
};

/// part [T, C], states [T, C].
PartShare share_of(std::span<const double> part, std::span<const float> states, int64_t d_model);

/// The direct paths of what is added in the embedding: the shares of the parts kPosition and kToken
/// in a hidden state; 0 where there is none.
struct DirectPath {
  PartShare position, token;
};

/// Of hidden_states[l], l = 0 … L. Arguments are those of for_each_residual_state().
std::vector<DirectPath> direct_path(const Model& model, const Trace& trace, int64_t sequence = 0,
                                    std::span<const ResidualCut> cuts = {});

/// What a part contributes to the position component of a state.
struct SourceShare {
  ResidualSource source;
  int64_t layer, head;  // as in ResidualPart
  double share = 0;     // may be negative; those of one state sum to 1, or are NaN
};

/// What all parts of a kind contribute together.
struct SourceSum {
  double share = 0;     // the sum of theirs
  double length = 0;    // of their sum, in lengths of the position component; or NaN
  double interior = 0;  // the part of the share that places in the interior have; or NaN
};

/// Where the position component of a hidden state comes from.
struct PositionSources {
  std::vector<SourceShare> parts;  // in the order of for_each_residual_state()
  SourceSum direct;                // kPosition
  SourceSum attention, mlp;        // of all blocks so far
  SourceSum other;                 // tokens, token types and biases
};

/// The position component of a hidden state is pos_p of latin_square_split(): the mean over orders
/// of the text of the state at a place p, less the mean over places. Being linear in the state, it
/// is the sum of the position components x_p of the parts of for_each_residual_state(), and
///
///     share = mean_p ⟨x_p, pos_p⟩ / mean_p ‖pos_p‖²,
///
/// the products being of different squares, so that the chance differences of few orders do not
/// count. kPosition is the direct path; kAttention and kMlp of a layer are position that this block
/// has written. Tokens and biases have a share where a LayerNorm scales them by how far a state at
/// this place varies.
///
/// A share is a projection: parts may cancel each other, and x has none where it is at a right
/// angle to pos. So the parts of a kind, whose sum is x, also have
///
///     length = √(mean_p ‖x_p‖² / mean_p ‖pos_p‖²),
///
/// the products being of different squares, too; 0 where x does not rise above the chance
/// differences. share − length² = mean_p ⟨x_p, pos_p − x_p⟩ / mean_p ‖pos_p‖²: 0 where x is at a
/// right angle to the sum of the other kinds, below where they oppose it.
///
/// The interior is the places more than two from a token that stays in every order, such as [CLS]:
/// the words beside that keep this neighbour, and what it does to them is in pos_p, too.
///
/// Returns each state l = 0 … L, attention by head where `heads` is true. Where a state has no
/// position component (none is added, or it does not rise above the chance differences) all numbers
/// are NaN.
///
/// Arguments and errors are those of latin_square_split(); the same seed gives the same orders.
/// More than fit into one batch are run twice: for the position components, and for the parts.
/// Keeps (L + 1)·(num_squares + 8)·n·C doubles for n movable tokens. In overlapping windows the
/// parts do not sum to the states, nor the shares to 1.
std::vector<PositionSources> position_sources(const Encoder& encoder,
                                              std::span<const int32_t> token_ids,
                                              std::span<const int64_t> movable,
                                              const RunOptions& options = {},
                                              int64_t num_squares = 8, uint64_t seed = 1,
                                              const Progress& progress = {}, bool heads = false);

}  // namespace phasor
