// The pipeline of Encoder::embed_chunks(), around a function that runs a batch.
#pragma once

#include <string_view>
#include <vector>

#include "outputs/embed.h"
#include "phasor/encoder.h"

namespace phasor::internal {

/// The sentences of a text, in bytes, without the spaces round them. One ends at a blank line, at
/// "。", "！" or "？", and at ".", "!", "?" or "…" before a space that none of a to z follows;
/// quotes and brackets that close behind those belong to it.
std::vector<TextSpan> sentences_of(std::string_view text);

/// Like Encoder::embed_chunks().
ChunkVectors embed_chunks(const Model& model, const Threads& threads, const EmbedInput& input,
                          const ChunkOptions& options, const EncodeBatch& encode);

}  // namespace phasor::internal
