// The named points of the forward pass, and the listener that sees what flows through them.
//
// Names and meanings are TransformerLens'. [T, C] unless said:
//
//   embed                                       path
//   kTokenEmbed      [T, E], s·Emb[id]          hook_embed
//   kPosEmbed        [T, E], the vector added   hook_pos_embed            (where one is added)
//   kTokenTypeEmbed  [T, E], the type-0 row     hook_token_type_embed     (BERT only)
//   kFullEmbed       what block 0 reads         hook_full_embed           = hidden_states[0]
//
//   block l                                     blocks.{l}.…
//   kResidPre        the block's input          hook_resid_pre
//   kQ, kK, kV       [T, H, D]                  attn.hook_q, _k, _v
//   kAttnScores      [H, T, T], what softmax reads  attn.hook_attn_scores
//   kPattern         [H, T, T], rows sum to 1   attn.hook_pattern
//   kZ               [T, H, D], heads' outputs  attn.hook_z
//   kAttnOut         after the output matrix    hook_attn_out
//   kResidMid        after attention's add      hook_resid_mid
//   kMlpPre          [T, F] before activation   mlp.hook_pre              (of the gate, if any)
//   kMlpPost         [T, F] after activation    mlp.hook_post             (and after the gating)
//   kMlpOut          after the second matrix    hook_mlp_out
//   kResidPost       after the MLP's add        hook_resid_post
//   kNormalizedResidPost  LN(resid_post)        hook_normalized_resid_post (post-norm only)
//
//   kFinalNorm       after the last LayerNorm   ln_final.hook_normalized  (where there is one)
//
// In post-norm models (BERT, Marian) resid_mid and resid_post are the sums *before* their LayerNorm
// and normalized_resid_post is what the next block reads; in pre-norm models resid_post is.
// Transformers' hidden_states[l + 1] is what block l + 1 reads, and its last one comes after
// kFinalNorm.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace [[gnu::visibility("default")]] phasor {

enum class Hook {
  kTokenEmbed,
  kPosEmbed,
  kTokenTypeEmbed,
  kFullEmbed,
  kResidPre,
  kQ,
  kK,
  kV,
  kAttnScores,
  kPattern,
  kZ,
  kAttnOut,
  kResidMid,
  kMlpPre,
  kMlpPost,
  kMlpOut,
  kResidPost,
  kNormalizedResidPost,
  kFinalNorm,
};
inline constexpr int kNumHooks = static_cast<int>(Hook::kFinalNorm) + 1;

/// Whether the hook lies inside a block (and so has a layer).
bool is_block_hook(Hook hook);

/// The path above, e.g. "blocks.3.attn.hook_q"; `layer` is ignored outside blocks.
std::string hook_path(Hook hook, int64_t layer);

/// One tensor passing one hook, for one sequence. Borrowed: `values` is overwritten as soon as
/// observe() returns, so copy what you keep.
struct HookEvent {
  Hook hook;
  int64_t layer;     // −1 outside blocks
  int64_t sequence;  // index into the batch
  /// The token of the sequence that row 0 stands for: 0, but for the later windows of
  /// Overflow::kWindow, which arrive one after the other.
  int64_t first_token;
  std::span<const int64_t> shape;  // 2 or 3 dimensions, as listed above
  std::span<const float> values;   // row-major
};

/// Listens to a run. wants() is asked for every hook and layer before anything is computed, because
/// what nobody wants is never stored: scores and patterns, values before the activation.
///
/// observe() is called while encode() runs, one call at a time, but on the thread that computed the
/// values, which need not be the one that called encode(): an observed batch is spread over threads
/// as any other, since to compute it on one would cost far more than to listen. The events of a
/// sequence come in the order of the forward pass, those of different sequences in no certain
/// order. So an observer needs no lock, but nothing that belongs to one thread either; and as long
/// as it listens, other threads may wait. After observe() has thrown it is not called again, and
/// encode() throws the same.
///
/// Observing changes the results no more than another batch would: no bit with AVX-512, see
/// Encoder.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual bool wants(Hook hook, int64_t layer) const = 0;
  virtual void observe(const HookEvent& event) = 0;
};

}  // namespace phasor
