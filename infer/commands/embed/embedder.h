// A model that makes vectors of texts as a command line says.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "infer/cli/line_stream.h"
#include "infer/cli/options.h"
#include "phasor/encoder.h"
#include "phasor/fields.h"
#include "phasor/model.h"

namespace infer {

/// What decides the numbers of a vector, and how the model is run.
struct VectorArguments {
  CommonOptions common;
  phasor::TextOptions how;
  bool strict = false;
};

/// Tells the user how vectors are made, unless it is to be quiet.
struct Embedder {
  /// Throws UsageError for options that are wrong, and what loading a model throws.
  explicit Embedder(const VectorArguments& given);

  bool makes(phasor::Use kind) const { return (phasor::uses_of(options) & kind) != 0; }
  /// Whether it makes nothing but one vector of each text.
  bool makes_dense_alone() const { return phasor::uses_of(options) == phasor::kUseDense; }

  /// The vectors of a LineStream's window.
  phasor::Vectors run(std::span<const std::string_view> texts, const phasor::Progress& progress,
                      const std::stop_token& stop);

  /// What is put before every text.
  std::string prompt() const;
  /// What a .safetensors file says of what made it: "model", "precision", in the hub's cache
  /// "revision", what the options say, and of vectors of texts the "pooling".
  std::map<std::string, std::string> metadata() const;
  /// By which vectors of texts are compared: the model's, or the cosine where its files do not say.
  phasor::Similarity similarity() const;

  std::shared_ptr<const phasor::Model> model;
  phasor::TextOptions options;
  phasor::Encoder encoder;
  StreamOptions stream;
  bool quiet;

 private:
  void tell(const VectorArguments& given) const;
};

}  // namespace infer
