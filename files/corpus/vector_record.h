// The record of a file of vectors: what made it, and of which texts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "files/files.h"

namespace infer {

/// What decides a vector's numbers, by name: fingerprints of the model's files, options, versions.
using MadeWith = std::map<std::string, std::string>;

/// The fingerprints of the files that decide what a model computes: "weights", "tokenizer" and
/// "config", which are all that are neither.
MadeWith model_fingerprints(const phasor::internal::ModelPath& folder);

/// A value of MadeWith that is another now.
struct Difference {
  std::string what, before, now;
};

/// Weights and tokenizer first, then in alphabetical order. The model's name is none, since its
/// files are compared.
std::vector<Difference> differences(const MadeWith& before, const MadeWith& now);
/// "weights 1f… of a (now 2e… of b)".
std::string text_of(const Difference& difference, const MadeWith& before, const MadeWith& now);

/// A .safetensors file holds its record in __metadata__; others have a file beside them in JSON:
/// vectors.npy.json.
struct VectorRecord {
  MadeWith made_with;
  int64_t lines = 0;
  int64_t bytes = 0;  // of the file, its header included
  std::string input;  // fingerprint of the lines
  std::string xxh64;  // of the file; empty while it is being written, and in its own metadata

  nlohmann::ordered_json json() const;
  /// Throws nlohmann's exceptions.
  static VectorRecord of(const nlohmann::json& json);

  /// Throws InvalidArgument naming `option`.
  void write(const std::string& option, const std::filesystem::path& record) const;
  /// Empty where `record` is no record. Throws InvalidArgument, which begins with `what`, where it
  /// cannot be read.
  static std::optional<VectorRecord> read(const std::string& what,
                                          const std::filesystem::path& record);
  /// Of a complete file of vectors; empty where it has none.
  static std::optional<VectorRecord> find(const std::filesystem::path& vectors);
};

/// The name of the record beside a file.
std::filesystem::path record_beside(const std::filesystem::path& vectors);
/// Throws InvalidArgument where a file that is no record has the name of that beside `vectors`.
void refuse_to_replace_record(const std::filesystem::path& vectors);

}  // namespace infer
