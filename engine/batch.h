// The sequences of a batch, packed end to end, never padded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/positions/position_source.h"

namespace phasor::internal {

/// Sequences end to end, borrowed: sequence s has the ids offsets[s] … offsets[s + 1] − 1.
struct TokenBatch {
  std::span<const int32_t> token_ids;         // [N]
  std::span<const int64_t> offsets;           // [B + 1]
  std::span<const int32_t> token_types = {};  // [N]; empty: all 0
  std::span<const int64_t> num_keys = {};     // [B]; no token attends to those behind so many
  std::span<const int64_t> read_tokens = {};  // [B]; of each, nothing but its last state is read

  int64_t size() const { return std::ssize(offsets) - 1; }
  std::span<const int32_t> sequence(int64_t s) const {
    return token_ids.subspan(offsets[s], offsets[s + 1] - offsets[s]);
  }
};

/// Tokens that attend to one another: a sequence, or one window of it. Its rows are contiguous in
/// the packed [N, …] buffers of its group.
struct Segment {
  int64_t sequence = 0;                    // index in the caller's batch
  int64_t first_token = 0;                 // of the sequence; above 0 in later windows only
  int64_t first_row = 0;                   // in the group's buffers
  std::span<const int32_t> token_ids;      // [T], borrowed
  std::span<const int32_t> token_types;    // [T], borrowed; empty: all 0
  std::vector<double> positions;           // [T], rows of the position table, possibly fractional
  std::optional<int64_t> read_token = {};  // nothing is read but this token's last state
  std::optional<int64_t> num_keys = {};    // no token attends to those behind so many

  int64_t num_tokens() const { return static_cast<int64_t>(token_ids.size()); }
};

/// Whole segments that one thread runs through the whole network.
struct Group {
  std::vector<Segment> segments;
  int64_t offset = 0;      // rows of the groups before this one
  int64_t num_rows = 0;    // N = Σ T
  int64_t max_tokens = 0;  // the longest segment

  /// Whether of every segment one token's last state is read.
  bool reads_one_token() const {
    return std::ranges::all_of(segments, [](const Segment& s) { return s.read_token.has_value(); });
  }
};

/// The segments of a batch under an overflow policy: a sequence each; its leading tokens
/// (kTruncate); or windows as long as the position table, and no longer than `window` where that is
/// above 0, each starting half a window after the one before and the last ending with the sequence
/// (kWindow). Token ids are borrowed.
std::vector<Segment> make_segments(const TokenBatch& batch, Overflow overflow,
                                   PositionSource& positions, int64_t window);

struct GroupSizes {
  int64_t min_groups = 1;        // if there are as many segments
  int64_t target_rows = 0;       // approximately, of a group
  bool whole_sequences = false;  // the windows of a sequence stay together
};

/// Spreads segments over groups, in order. Sets first_row.
std::vector<Group> make_groups(std::vector<Segment> segments, const GroupSizes& sizes);

}  // namespace phasor::internal
