// infer embed --nearest and --similarity: what is compared by vectors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "infer/cli/line_stream.h"
#include "infer/commands/embed/embedder.h"
#include "phasor/pooling.h"

namespace infer {

/// A text of --nearest, and the lines nearest to it by their similarity.
struct Query {
  std::string text;
  std::vector<float> vector;
  Ranking nearest = {};
};

/// With their vectors. Without a `prefix` the model's prompt for queries is put before the texts,
/// or else what is put before the lines.
std::vector<Query> queries_of(const std::vector<std::string>& texts,
                              const std::optional<std::string>& prefix, Embedder& embedder);

/// Adds a line to the `most` nearest of each query.
void add_line(std::span<const float> vector, const Line& line, phasor::Similarity kind,
              int64_t most, std::vector<Query>& queries);

/// For each query a table, or a JSON object.
void print_nearest(const std::vector<Query>& queries, phasor::Similarity kind, bool json);

/// Each text's similarity with each, as a table or as one JSON object.
void print_similarities(const std::vector<std::string>& texts, Embedder& embedder, bool json);

}  // namespace infer
