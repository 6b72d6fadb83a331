// The pipeline of Encoder::embed_all(), around functions that run a batch and its heads.
#pragma once

#include <memory>
#include <optional>

#include "outputs/embed.h"
#include "phasor/encoder.h"

namespace phasor::internal {

struct AllVectorsData {
  std::shared_ptr<const EmbeddingsData> dense = {};  // null: not asked for
  std::optional<SparseVectors> sparse = {};
  std::optional<TokenVectors> tokens = {};
};

/// Like Encoder::embed_all(). `logits`: [n, C] → [n, V]; `project`: [n, C] → [n, E].
AllVectorsData embed_all(const Model& model, const Threads& threads, const EmbedInput& input,
                         VectorKinds kinds, const RetrievalOptions& options,
                         const EncodeBatch& encode, const HeadOfStates& logits,
                         const HeadOfStates& project);

}  // namespace phasor::internal
