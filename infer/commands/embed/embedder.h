// A model that makes vectors of texts as a command line says, and the kinds of vectors: what people
// are told of them, their JSON, and their tensors.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "infer/cli/line_stream.h"
#include "infer/columns.h"
#include "phasor/encoder.h"
#include "phasor/model.h"

namespace infer {

struct EmbedArguments : TextArguments {
  std::string output;                       // the file of -o
  std::optional<std::string> query_prefix;  // like TextOptions::prompt, for --nearest
  int nearest = 0;
  bool similarity = false;
};

/// What was made of lines.
struct VectorCounts {
  int64_t lines = 0;
  std::map<std::string, int64_t> items = {};  // by the arrays of their offsets

  void add(const phasor::Vectors& vectors);
};

/// Borrows the arguments.
struct Embedder {
  /// Tells the user how vectors are made, unless it is to be quiet. Throws UsageError for options
  /// that are wrong, and what loading a model throws.
  explicit Embedder(const EmbedArguments& arguments);

  /// Runs the lines; see run_lines().
  template <typename Write, typename Finish>
  int run(LineReader& lines, bool waits, const Write& write, const Finish& finish) const {
    const auto embed = [&](auto texts, const auto& how) { return encoder.embed(texts, how); };
    return run_lines(given, lines, waits, bytes_of_line(), embed, write, finish);
  }

  /// "128 numbers, 12 weights each".
  std::string summary(const VectorCounts& counts) const;
  /// A line's vectors as one JSON object.
  std::string json_of(const phasor::Vectors& vectors, int64_t i, int64_t line) const;
  /// What a .safetensors file says of what made it: "model", "precision", in the hub's cache
  /// "revision", what the options say, and of vectors of texts the "pooling".
  std::map<std::string, std::string> metadata() const;
  /// Writes the parts of all lines under their names, and the shape of the sparse matrix.
  void save_vectors(const Columns& columns) const;
  /// By which vectors of texts are compared: the model's, or the cosine where its files do not say.
  phasor::Similarity similarity() const;

  const EmbedArguments& given;
  std::shared_ptr<const phasor::Model> model;
  phasor::Encoder encoder;

 private:
  int64_t bytes_of_line() const;
};

/// infer embed --nearest: the lines nearest to each of the given texts, as a table or a JSON object
/// for each text. Returns the exit code.
int nearest(EmbedArguments& given);

/// infer embed --similarity: each text's similarity with each, as a table or as one JSON object.
int similarities(EmbedArguments& given);

}  // namespace infer
