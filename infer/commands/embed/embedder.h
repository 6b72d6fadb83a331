// A model that makes vectors of texts as a command line says.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "infer/cli/command_line.h"
#include "infer/cli/line_stream.h"
#include "infer/cli/options.h"
#include "phasor/encoder.h"
#include "phasor/model.h"

namespace infer {

/// What decides the numbers of a vector, and how the model is run.
struct VectorOptions {
  CommonOptions common;
  std::string pooling;                // empty: the model's own
  std::string overflow;               // empty: the default of the command
  std::optional<std::string> prefix;  // in place of the model's prompt
  bool normalize = false;             // neither: as the model's files say
  bool no_normalize = false;
  bool strict = false;
};

/// --pooling, --normalize, --no-normalize, --lang, --special, --prefix, --overflow and --strict.
void add_vector_options(CommandLine& line, VectorOptions& options);

/// What the options say, and where they say nothing the model's files. The model is asked only for
/// what it must say. Throws UsageError for options that are wrong.
phasor::EmbedOptions embed_options(const VectorOptions& given, const phasor::Model& model);

/// Tells the user how vectors are made, unless it is to be quiet.
struct Embedder {
  /// Without --prefix, the model's default prompt is put before every text; where `finds` is true,
  /// that for documents which are searched, if it has one. Throws UsageError for options that are
  /// wrong, and what loading a model throws.
  explicit Embedder(const VectorOptions& given, bool finds = false);

  /// The vectors of a LineStream's window.
  phasor::Embeddings run(std::span<const std::string_view> texts, const phasor::Progress& progress,
                         const std::stop_token& stop);
  int64_t width() const { return encoder.embedding_width(options); }
  /// See model_metadata() below, with the pooling.
  std::map<std::string, std::string> metadata() const;

  /// By which vectors are compared: the model's, or the cosine where its files do not say.
  phasor::Similarity similarity() const;

  std::shared_ptr<const phasor::Model> model;
  phasor::EmbedOptions options;
  phasor::Encoder encoder;
  StreamOptions stream;
  VectorOptions given;
};

/// What a .safetensors file says of what made it: "model", "precision" and, in the hub's cache,
/// "revision".
std::map<std::string, std::string> model_metadata(const phasor::Encoder& encoder);

}  // namespace infer
