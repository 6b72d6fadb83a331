// The pipeline of Encoder::embed(), around a function that runs a batch of token ids.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/batch.h"
#include "phasor/encoder.h"

namespace phasor::internal {

struct EmbeddingsData {
  int64_t width = 0;
  std::vector<float> own_values;    // [B, E]; empty if the caller gave memory
  std::span<float> values;          // [B, E]
  std::vector<TextReport> reports;  // [B]
};

/// `window`: the longest of Overflow::kWindow.
using EncodeBatch =
    std::function<Encoding(const TokenBatch& batch, const RunOptions& options, int64_t window)>;

/// Like Encoder::embed(), tokenizing on that many threads.
std::shared_ptr<const EmbeddingsData> embed(const Model& model, int threads,
                                            std::span<const std::string_view> texts,
                                            const EmbedOptions& options, const EncodeBatch& encode);

/// Like Encoder::embedding_width().
int64_t embedding_width(const Model& model, const EmbedOptions& options);

}  // namespace phasor::internal
