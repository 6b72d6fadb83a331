// The hooks' paths, in TransformerLens' spelling.

#include "phasor/hooks.h"

#include <fmt/format.h>

#include <array>

#include "files/refuse.h"

namespace phasor {

using namespace internal;

namespace {

// In the order of enum Hook; a path with {} belongs to a block.
constexpr std::array<std::string_view, kNumHooks> kPaths = {
    "hook_embed",
    "hook_pos_embed",
    "hook_token_type_embed",
    "hook_full_embed",
    "blocks.{}.hook_resid_pre",
    "blocks.{}.attn.hook_q",
    "blocks.{}.attn.hook_k",
    "blocks.{}.attn.hook_v",
    "blocks.{}.attn.hook_rot_q",
    "blocks.{}.attn.hook_rot_k",
    "blocks.{}.attn.hook_attn_scores",
    "blocks.{}.attn.hook_pattern",
    "blocks.{}.attn.hook_z",
    "blocks.{}.hook_attn_out",
    "blocks.{}.hook_resid_mid",
    "blocks.{}.hook_normalized_resid_mid",
    "blocks.{}.mlp.hook_pre",
    "blocks.{}.mlp.hook_post",
    "blocks.{}.hook_mlp_out",
    "blocks.{}.hook_resid_post",
    "blocks.{}.hook_normalized_resid_post",
    "ln_final.hook_normalized",
};

}  // namespace

bool is_block_hook(Hook hook) {
  return hook >= Hook::kResidPre && hook <= Hook::kNormalizedResidPost;
}

std::string hook_path(Hook hook, int64_t layer) {
  return fmt::format(fmt::runtime(kPaths[static_cast<size_t>(hook)]), layer);
}

std::vector<HookPoint> find_hooks(std::string_view name, int64_t num_layers) {
  std::vector<HookPoint> points;
  for (int i = 0; i < kNumHooks; ++i) {
    const auto hook = static_cast<Hook>(i);
    const bool in_block = is_block_hook(hook);
    for (int64_t layer = in_block ? 0 : -1; layer < (in_block ? num_layers : 0); ++layer) {
      const std::string path = hook_path(hook, layer);
      if (name == "all" || path == name || path.ends_with(fmt::format(".{}", name)) ||
          path.ends_with(fmt::format("hook_{}", name))) {
        points.push_back({hook, layer});
      }
    }
  }
  if (!points.empty()) return points;
  refuse<InvalidArgument>(
      "this model has no hook '{}'; write all, or names like attn.hook_pattern (of every block) "
      "and blocks.{}.hook_resid_post (of the last), as TransformerLens has them",
      name, num_layers - 1);
}

}  // namespace phasor
