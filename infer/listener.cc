// What listens to an observed run: it keeps states, and sums attention up on the way.
#include "infer/listener.h"

#include <cstdlib>

namespace infer {

using phasor::Hook;

bool Listener::wants(Hook hook, int64_t layer) const {
  if (hook == Hook::kPattern) return wants_.attention || wants_.patterns;
  return trace_.wants(hook, layer);
}

void Listener::observe(const phasor::HookEvent& event) {
  if (event.hook != Hook::kPattern || wants_.patterns) trace_.observe(event);
  if (event.hook != Hook::kPattern || !wants_.attention) return;
  const int64_t heads = event.shape[0], tokens = event.shape[1];
  const std::vector<double> shares = phasor::attention_by_offset(event.values, heads, tokens);
  Sum& sum = sums_[{event.layer, event.sequence}];
  const auto rows = static_cast<double>(heads * tokens);
  for (int64_t i = 0; i < std::ssize(shares); ++i) {
    sum.by_offset[i - tokens + 1] += shares[i] * rows;
  }
  sum.rows += rows;
}

ObservedAttention Listener::attention(int64_t layer, int64_t sequence) const {
  const Sum& sum = sums_.at({layer, sequence});
  ObservedAttention attention{.by_offset = sum.by_offset};
  for (auto& [offset, share] : attention.by_offset) {
    share /= sum.rows;
    attention.distance += share * static_cast<double>(std::abs(offset));
  }
  return attention;
}

}  // namespace infer
