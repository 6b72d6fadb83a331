// infer embed --sparse, --tokens and --chunks: what a model makes of texts beside one vector.
#pragma once

#include <optional>
#include <string>

#include "infer/cli/line_reader.h"
#include "infer/commands/embed/embedder.h"

namespace infer {

/// With `sparse` a weight for each piece of the vocabulary, of which few are not 0; with `tokens` a
/// vector of each token; with both also one of each text, from one run.
struct RetrievalArguments {
  bool sparse = false;
  bool tokens = false;
  bool query = false;                   // see phasor::RetrievalOptions
  std::optional<int64_t> chunk_tokens;  // a vector of each chunk, see phasor::ChunkOptions

  bool any() const { return sparse || tokens || chunk_tokens; }
};

/// Of every line, to `output` (.safetensors; all of them are kept until the end) or, where that is
/// empty, as JSON lines. Returns the exit code.
int embed_for_retrieval(const RetrievalArguments& arguments, const VectorOptions& given,
                        LineReader& lines, const std::string& output);

}  // namespace infer
