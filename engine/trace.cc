// Records a run and merges overlapping windows.

#include "phasor/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

#include "phasor/errors.h"

namespace phasor {
namespace {

bool is_attention_map(Hook hook) { return hook == Hook::kAttnScores || hook == Hook::kPattern; }

int64_t size_of(std::span<const int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies());
}

// Visits every element of a window as (index in the window, index in the whole): the first
// dimension of [T, …] moves by first_token, the last two of [H, T, T].
template <typename Visit>
void for_each_shifted(const std::vector<int64_t>& window, const std::vector<int64_t>& whole,
                      bool attention_map, int64_t first_token, Visit visit) {
  const size_t d = attention_map ? 1 : 0;  // the dimension of the rows
  const int64_t planes = attention_map ? window[0] : 1, rows = window[d];
  const int64_t width = size_of(std::span(window).subspan(d + 1));
  const int64_t whole_width = size_of(std::span(whole).subspan(d + 1));
  for (int64_t p = 0; p < planes; ++p) {
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t from = (p * rows + r) * width;
      const int64_t to =
          (p * whole[d] + first_token + r) * whole_width + (attention_map ? first_token : 0);
      for (int64_t c = 0; c < width; ++c) visit(from + c, to + c);
    }
  }
}

}  // namespace

Trace Trace::hidden_states_and_attentions() {
  return Trace{Hook::kFullEmbed, Hook::kPattern, Hook::kResidPost, Hook::kNormalizedResidPost,
               Hook::kFinalNorm};
}

Trace Trace::everything() {
  std::vector<Hook> hooks;
  for (int i = 0; i < kNumHooks; ++i) hooks.push_back(static_cast<Hook>(i));
  return Trace(std::move(hooks));
}

bool Trace::wants(Hook hook, int64_t) const {
  return std::find(hooks_.begin(), hooks_.end(), hook) != hooks_.end();
}

void Trace::observe(const HookEvent& event) {
  num_layers_ = std::max(num_layers_, event.layer + 1);
  Sum& sum = entries_[{event.hook, event.layer, event.sequence}];
  Entry& entry = sum.entry;
  const std::vector<int64_t> shape(event.shape.begin(), event.shape.end());
  if (event.first_token == 0) {  // the only window, or the first of several
    entry.shape = shape;
    entry.values.assign(event.values.begin(), event.values.end());
    sum.counts.clear();
    return;
  }
  const bool map = is_attention_map(event.hook);
  std::vector<int64_t> whole = shape;
  for (size_t d = map ? 1 : 0; d < (map ? 3u : 1u); ++d) whole[d] += event.first_token;
  if (sum.counts.empty()) sum.counts.assign(entry.values.size(), 1.0f);
  if (whole != entry.shape) {  // grow, keeping the values
    Sum grown{{whole, {}}, {}};
    grown.entry.values.resize(size_of(whole));
    grown.counts.resize(size_of(whole));
    for_each_shifted(entry.shape, whole, map, 0, [&](int64_t from, int64_t to) {
      grown.entry.values[to] = entry.values[from];
      grown.counts[to] = sum.counts[from];
    });
    sum = std::move(grown);
  }
  for_each_shifted(shape, whole, map, event.first_token, [&](int64_t from, int64_t to) {
    const float count = ++sum.counts[to];
    entry.values[to] += (event.values[from] - entry.values[to]) / count;  // running mean
  });
}

bool Trace::has(Hook hook, int64_t layer, int64_t sequence) const {
  return entries_.count({hook, is_block_hook(hook) ? layer : -1, sequence}) > 0;
}

const Trace::Entry& Trace::at(Hook hook, int64_t layer, int64_t sequence) const {
  const auto found = entries_.find({hook, is_block_hook(hook) ? layer : -1, sequence});
  if (found == entries_.end()) {
    throw InvalidArgument(
        fmt::format("the trace holds no {} of sequence {}; was the hook asked for, "
                    "and does the model have it?",
                    hook_path(hook, layer), sequence));
  }
  return found->second.entry;
}

const Trace::Entry& Trace::hidden_state(int64_t l, int64_t sequence) const {
  if (l == 0) return at(Hook::kFullEmbed, -1, sequence);
  if (l == num_layers_ && has(Hook::kFinalNorm, -1, sequence)) {
    return at(Hook::kFinalNorm, -1, sequence);
  }
  const bool post_norm = has(Hook::kNormalizedResidPost, l - 1, sequence);
  return at(post_norm ? Hook::kNormalizedResidPost : Hook::kResidPost, l - 1, sequence);
}

void Trace::clear() {
  entries_.clear();
  num_layers_ = 0;
}

}  // namespace phasor
