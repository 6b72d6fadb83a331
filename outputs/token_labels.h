// The pipeline of Encoder::label_tokens(), around functions that run a batch and its head.
#pragma once

#include <span>
#include <string_view>

#include "outputs/embed.h"
#include "phasor/encoder.h"

namespace phasor::internal {

/// Like Encoder::label_tokens(). `logits`: [n, C] → [n, labels].
LabelledTexts label_tokens(const Model& model, const Threads& threads,
                           std::span<const std::string_view> texts, const LabelOptions& options,
                           const EncodeBatch& encode, const HeadOfStates& logits);

}  // namespace phasor::internal
