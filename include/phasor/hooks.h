// The named points of the forward pass, and the observer that receives the values there.
//
// Names and meanings are TransformerLens'. [T, C] unless said:
//
//   embed                                       path
//   kTokenEmbed      [T, E], s·Emb[id]          hook_embed
//   kPosEmbed        [T, E], the vector added   hook_pos_embed            (where one is added)
//   kTokenTypeEmbed  [T, E], its type's row     hook_token_type_embed     (where there are types)
//   kFullEmbed       what block 0 reads         hook_full_embed           = hidden_states[0]
//
//   block l                                     blocks.{l}.…
//   kResidPre        the block's input          hook_resid_pre
//   kQ, kK, kV       [T, H, D], [T, G, D]       attn.hook_q, _k, _v       (before their norms)
//   kRotQ, kRotK     the same, rotated          attn.hook_rot_q, _k       (rotary positions only)
//   kAttnScores      [H, T, T], what softmax reads  attn.hook_attn_scores  (−∞: not seen)
//   kPattern         [H, T, T], rows sum to 1   attn.hook_pattern
//   kZ               [T, H, D], heads' outputs  attn.hook_z
//   kAttnOut         after the output matrix    hook_attn_out
//   kResidMid        after attention's add      hook_resid_mid
//   kNormalizedResidMid  LN(resid_mid)          hook_normalized_resid_mid (post-norm only)
//   kMlpPre          [T, F] before activation   mlp.hook_pre              (of the gate, if any)
//   kMlpPost         [T, F] after activation    mlp.hook_post             (and after the gating)
//   kMlpOut          after the second matrix    hook_mlp_out
//   kResidPost       after the MLP's add        hook_resid_post
//   kNormalizedResidPost  LN(resid_post)        hook_normalized_resid_post (post-norm only)
//
//   kFinalNorm       after the last LayerNorm   ln_final.hook_normalized  (where there is one)
//
// In post-norm models (BERT, Marian) resid_mid and resid_post are the sums *before* their
// LayerNorm; the MLP reads normalized_resid_mid, and the next block normalized_resid_post. In
// pre-norm models the next block reads resid_post. Transformers' hidden_states[l + 1] is what block
// l + 1 reads, and its last one comes after kFinalNorm.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] phasor {

/// The points, in the order of the forward pass. The table at the start of hooks.h has the shape,
/// the path and the meaning of each.
enum class Hook {
  kTokenEmbed,
  kPosEmbed,
  kTokenTypeEmbed,
  kFullEmbed,
  kResidPre,
  kQ,
  kK,
  kV,
  kRotQ,
  kRotK,
  kAttnScores,
  kPattern,
  kZ,
  kAttnOut,
  kResidMid,
  kNormalizedResidMid,
  kMlpPre,
  kMlpPost,
  kMlpOut,
  kResidPost,
  kNormalizedResidPost,
  kFinalNorm,
};
inline constexpr int kNumHooks = static_cast<int>(Hook::kFinalNorm) + 1;

/// Whether the hook is inside a block (and so has a layer).
bool is_block_hook(Hook hook);

/// The path in the table of hooks.h, such as "blocks.3.attn.hook_q"; `layer` is ignored outside
/// blocks.
std::string hook_path(Hook hook, int64_t layer);

/// A hook of a model. `layer` is −1 outside blocks.
struct HookPoint {
  Hook hook;
  int64_t layer;
};

/// What `name` means in a model with so many blocks, in the order of the enum: every hook ("all"),
/// a path ("blocks.3.attn.hook_q"), or the end of a path, in every block ("attn.hook_pattern",
/// "pattern"). Throws InvalidArgument if there is none.
std::vector<HookPoint> find_hooks(std::string_view name, int64_t num_layers);

/// One tensor passing one hook, for one sequence. Borrowed: `values` is overwritten as soon as
/// observe() returns, so copy what you keep.
struct HookEvent {
  Hook hook;
  int64_t layer;     // −1 outside blocks
  int64_t sequence;  // index into the batch
  /// The sequence's token in row 0: 0, except for the later windows of Overflow::kWindow, which
  /// arrive one after the other.
  int64_t first_token;
  std::span<const int64_t> shape;  // 2 or 3 dimensions, as in the table of hooks.h
  std::span<const float> values;   // row-major
};

/// Receives values of a run, and may change them. wants() and changes() are called for every hook
/// and layer before anything is computed, because values that nobody wants are never stored: scores
/// and patterns, values before the activation.
///
/// observe() is called during encode(), one call of a run at a time, possibly from different
/// threads: an observed batch is spread over threads like any other, and each thread passes on the
/// values it computed. So an observer needs no lock, unless it is given to two runs at once, but
/// must not rely on thread-local state, and other threads may wait while it works. The events of a
/// sequence come in the order of the forward pass, those of different sequences in no particular
/// order. After observe() has thrown it is not called again, and encode() throws the same
/// exception.
///
/// Where changes() is true, change() gets the values first, and the run goes on with what it leaves
/// there: a head set to zero, a state of another run. It is called like observe(). Observing alone
/// does not change the results; a change() that does nothing at kAttnScores or kPattern may change
/// them by the rounding of the Encoder's precision, because rows of the pattern are normalised
/// before they are multiplied by the values, not after.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual bool wants(Hook hook, int64_t layer) const = 0;
  virtual void observe(const HookEvent& event) = 0;
  virtual bool changes(Hook /*hook*/, int64_t /*layer*/) const { return false; }
  /// `values` are those of the event, to be written to: any finite numbers. At kAttnScores also −∞,
  /// which hides a key from a query; a finite number there, or a weight at kPattern, shows a key
  /// that the layer's window hides.
  virtual void change(const HookEvent& /*event*/, std::span<float> /*values*/) {}
};

}  // namespace phasor
