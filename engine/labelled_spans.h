// From the probabilities of tokens' labels to spans of a text.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "phasor/encoder.h"

namespace phasor::internal {

/// A text that was tokenized with offsets in bytes, and the probabilities of its tokens' labels.
struct TokenProbabilities {
  std::string_view text;
  const Tokens& tokens;
  std::span<const float> values;  // [T, labels]
  std::optional<int32_t> unknown_id = {};
};

/// See Aggregation.
std::vector<LabelledSpan> labelled_spans(const std::vector<std::string>& labels,
                                         const TokenProbabilities& text, Aggregation aggregation);

/// Makes numbers of bytes numbers of characters, where a byte that is not UTF-8 is one.
void count_characters(std::string_view text, std::vector<LabelledSpan>& spans);

}  // namespace phasor::internal
