// The kinds of vectors that infer embed makes: what people are told of them, their JSON, and their
// tensors.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "infer/columns.h"
#include "infer/commands/embed/embedder.h"
#include "phasor/results.h"

namespace infer {

/// "sentence vectors: cls, normalised (1_Pooling/config.json); sparse vectors: …". Throws what
/// Model throws for a kind that the model does not make.
std::string description(const Embedder& embedder);

/// What was made of lines.
struct VectorCounts {
  int64_t lines = 0;
  std::map<std::string, int64_t> items = {};  // by their arrays

  void add(const phasor::Vectors& vectors);
  /// "128 numbers, 12 of 8192 weights each".
  std::string summary(const Embedder& embedder) const;
};

/// The bytes of a line's vectors, about.
int64_t bytes_of_line(const Embedder& embedder);

/// A line's vectors as one JSON object.
std::string to_json(const phasor::Vectors& vectors, int64_t i, int64_t line,
                    const phasor::Tokenizer& tokenizer);

/// Writes the parts of all lines under their names, and the shape of the sparse matrix.
void save_vectors(const std::string& file, const Columns& columns, const Embedder& embedder);

}  // namespace infer
