// From the probabilities of tokens' labels to spans of a text.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "phasor/options.h"
#include "phasor/results.h"

namespace phasor::internal {

/// A text that was tokenized with offsets in bytes, and the probabilities of its tokens' labels.
struct TokenProbabilities {
  std::string_view text;
  const Tokens& tokens;
  std::span<const float> values;  // [T, labels]
  std::optional<int32_t> unknown_id = {};
};

/// What a label says: "B-PER" begins a span of the kind "PER".
struct LabelTag {
  char place = 'I';  // of B, I, E, S; O: outside
  std::string_view kind;
  size_t kind_number = 0;  // from 0
};

/// The labels of a head, which are borrowed, and how they make up spans.
class SpanLabels {
 public:
  explicit SpanLabels(std::span<const std::string> labels);

  /// See Aggregation; their labels are borrowed.
  std::vector<LabelledSpan> operator()(const TokenProbabilities& text,
                                       Aggregation aggregation) const;

 private:
  const std::span<const std::string> labels_;
  bool is_bioes_ = false;
  std::vector<LabelTag> tags_;  // of each label
  size_t num_kinds_ = 0;
};

}  // namespace phasor::internal
