// Cosines between vectors: of a few texts with each other, of queries with the lines of a file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "infer/cli/options.h"
#include "infer/commands/embed/embed_stream.h"

namespace infer {

/// Vectors of up to 1000 texts, with notes on those that are cut or not all UTF-8. `option` is for
/// messages.
phasor::Embeddings embed_few(phasor::Encoder& encoder, const phasor::EmbedOptions& how,
                             const std::vector<std::string>& texts, const std::string& option,
                             bool quiet);

/// Each text's cosine with each, as a table or as one JSON object.
void print_similarities(const std::vector<std::string>& texts, const phasor::Embeddings& vectors,
                        bool json);

/// Keeps the lines nearest to each query.
class NearestLines {
 public:
  NearestLines(std::vector<std::string> queries, phasor::Embeddings vectors, size_t most)
      : queries_(std::move(queries)),
        vectors_(std::move(vectors)),
        most_(most),
        nearest_(queries_.size()) {}

  /// Further lines, numbered from `first`.
  void add(std::span<const Line> lines, const phasor::Embeddings& vectors, int64_t first);
  /// For each query the nearest line first: a table, or a JSON object a query.
  void print(bool json) const;

 private:
  struct Neighbour {
    double cosine = 0;
    int64_t number = 0;
    std::string text;
  };
  std::vector<std::string> queries_;
  phasor::Embeddings vectors_;
  size_t most_;
  std::vector<std::vector<Neighbour>> nearest_;  // of each query, the nearest first
};

}  // namespace infer
