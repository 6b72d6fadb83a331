// infer embed --sparse and --tokens: what a model makes of texts beside one vector.
#pragma once

#include <string>

#include "infer/cli/line_reader.h"
#include "infer/commands/embed/embedder.h"

namespace infer {

/// kSparse: a weight for each piece of the vocabulary, of which few are not 0. kTokens: a vector of
/// each token.
enum class RetrievalKind { kSparse, kTokens };

/// Of every line, to `output` (.safetensors; all of them are kept until the end) or, where that is
/// empty, as JSON lines. `is_query`: see phasor::RetrievalOptions. Returns the exit code.
int embed_for_retrieval(RetrievalKind kind, const VectorOptions& given, LineReader& lines,
                        const std::string& output, bool is_query);

}  // namespace infer
