#include "lens/study/run_observer.h"

#include <cstdlib>

namespace phasor::internal {

bool RunObserver::wants(Hook hook, int64_t layer) const {
  if (hook == Hook::kPattern) return wants_.attention || wants_.patterns;
  return trace_.wants(hook, layer);
}

void RunObserver::observe(const HookEvent& event) {
  if (event.hook != Hook::kPattern || wants_.patterns) trace_.observe(event);
  if (event.hook != Hook::kPattern || !wants_.attention) return;
  const int64_t num_heads = event.shape[0], tokens = event.shape[1];
  std::vector<int64_t> special;  // of this window
  for (const int64_t place : special_.at(event.sequence)) {
    const int64_t t = place - event.first_token;
    if (t >= 0 && t < tokens) special.push_back(t);
  }
  Sum& sum = sums_[{event.layer, event.sequence}];
  sum.heads = head_profiles(event.values, num_heads, tokens, special);
  const auto rows = static_cast<double>(tokens);
  for (const HeadProfile& head : sum.heads) {
    for (int64_t d = 1 - tokens; d < tokens; ++d) {
      Sum::Offset& at = sum.by_offset[d];
      const auto having = static_cast<double>(tokens - std::abs(d));
      at.weight += head.by_offset[d + tokens - 1] * having;
      at.rows += having;
    }
    sum.distance += head.mean_distance * rows;
    sum.entropy_share += head.entropy_share * rows;
    sum.rows += rows;
  }
  ++sum.windows;
}

ObservedAttention RunObserver::attention(int64_t layer, int64_t sequence) const {
  const Sum& sum = sums_.at({layer, sequence});
  ObservedAttention attention{.by_offset = {},
                              .distance = sum.distance / sum.rows,
                              .entropy_share = sum.entropy_share / sum.rows};
  if (sum.windows == 1) attention.heads = sum.heads;
  for (const auto& [offset, at] : sum.by_offset) attention.by_offset[offset] = at.weight / at.rows;
  return attention;
}

}  // namespace phasor::internal
