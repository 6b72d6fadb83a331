// The pipeline of Encoder::embed_tokens(), around functions that run a batch and its head.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/embed.h"
#include "phasor/encoder.h"

namespace phasor::internal {

/// Like Encoder::embed_tokens(). `project`: [n, C] → [n, E].
TokenVectors embed_tokens(const Model& model, const Threads& threads, const EmbedInput& input,
                          const RetrievalOptions& options, const EncodeBatch& encode,
                          const std::function<std::vector<float>(std::span<const float>)>& project);

}  // namespace phasor::internal
