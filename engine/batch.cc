#include "engine/batch.h"

#include <algorithm>

namespace phasor::internal {

namespace {

std::vector<int64_t> window_starts(int64_t num_tokens, int64_t window) {
  const int64_t stride = std::max<int64_t>(1, window / 2);
  std::vector<int64_t> starts;
  for (int64_t start = 0; start + window < num_tokens; start += stride) starts.push_back(start);
  starts.push_back(num_tokens - window);
  return starts;
}

}  // namespace

std::vector<Segment> make_segments(const TokenBatch& batch, Overflow overflow,
                                   PositionSource& positions, int64_t window) {
  std::vector<Segment> segments;
  const auto add = [&](int64_t sequence, int64_t first, int64_t num_tokens) {
    const std::span<const int32_t> ids = batch.sequence(sequence).subspan(first, num_tokens);
    const std::span<const int32_t> types =
        batch.token_types.empty()
            ? batch.token_types
            : batch.token_types.subspan(batch.offsets[sequence] + first, num_tokens);
    segments.push_back({.sequence = sequence,
                        .first_token = first,
                        .token_ids = ids,
                        .token_types = types,
                        .positions = positions.place(ids, overflow)});
    if (!batch.num_keys.empty())
      segments.back().num_keys =
          std::clamp<int64_t>(batch.num_keys[sequence] - first, 1, num_tokens);
  };
  std::optional<int64_t> limit = positions.max_tokens();
  if (window > 0 && overflow == Overflow::kWindow) limit = std::min(limit.value_or(window), window);
  for (int64_t s = 0; s < batch.size(); ++s) {
    const int64_t num_tokens = std::ssize(batch.sequence(s));
    const bool too_long = limit && *limit > 0 && num_tokens > *limit;
    if (too_long && overflow == Overflow::kTruncate) {
      add(s, 0, *limit);
    } else if (too_long && overflow == Overflow::kWindow) {
      for (const int64_t start : window_starts(num_tokens, *limit)) add(s, start, *limit);
    } else {
      add(s, 0, num_tokens);
    }
  }
  return segments;
}

std::vector<Group> make_groups(std::vector<Segment> segments, const GroupSizes& sizes) {
  int64_t total = 0;
  for (const Segment& segment : segments) total += segment.num_tokens();
  const int64_t share = (total + sizes.min_groups - 1) / sizes.min_groups;
  const int64_t limit = std::max<int64_t>(1, std::min(share, sizes.target_rows));
  std::vector<Group> groups;
  for (Segment& segment : segments) {
    const bool stays = sizes.whole_sequences && segment.first_token > 0;
    if (groups.empty() || (groups.back().num_rows >= limit && !stays)) {
      const int64_t offset = groups.empty() ? 0 : groups.back().offset + groups.back().num_rows;
      groups.push_back({.segments = {}, .offset = offset});
    }
    Group& group = groups.back();
    segment.first_row = group.num_rows;
    group.num_rows += segment.num_tokens();
    group.max_tokens = std::max(group.max_tokens, segment.num_tokens());
    group.segments.push_back(std::move(segment));
  }
  return groups;
}

}  // namespace phasor::internal
