// infer embed --nearest: the lines that are most similar to a few texts.
#pragma once

#include <cstdint>
#include <filesystem>
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

/// Adds a line, whose vector is finite, to the nearest of each query.
void add_line(std::span<const float> vector, int64_t number, const std::string& text,
              phasor::Similarity kind, int64_t most, std::vector<Query>& queries);

/// For each query a table, or a JSON object. Without `has_texts` lines are shown by number alone.
void print_nearest(const std::vector<Query>& queries, phasor::Similarity kind, bool json,
                   bool has_texts = true);

/// Gives the lines that were found their texts, which a file has. Throws InvalidArgument where its
/// lines are not `rows`, or have another fingerprint than that of `file`, if that is known.
void add_texts(const std::string& texts, const std::filesystem::path& file, int64_t rows,
               const std::string& fingerprint, std::vector<Query>& queries);

/// A file that infer embed has written, or another program, as --in names it.
struct SavedVectors {
  std::filesystem::path file;
  std::string texts = {};  // the file of the lines; empty: only numbers are known
  /// Vectors of the same lines, by which those that are found by `file` are compared again.
  std::filesystem::path rescore = {};

  /// Searches all rows on `threads` threads, with the same result for any number of them. Throws
  /// InvalidArgument where they are not the embedder's, by their width or their record, or where
  /// the texts are others.
  void search(const Embedder& embedder, int64_t most, int threads, bool quiet,
              std::vector<Query>& queries) const;
};

}  // namespace infer
