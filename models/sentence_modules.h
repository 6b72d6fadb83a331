// sentence-transformers' modules: what modules.json lists, and the parts that several kinds of
// models have.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "files/model_folder.h"
#include "phasor/pooling.h"

namespace phasor::internal {

inline constexpr int64_t kMaxDenseWidth = int64_t{1} << 16;

/// "sentence_transformers.models.Pooling" -> "Pooling".
std::string module_kind(const std::string& type);

struct Module {
  std::string kind;  // empty of other code than sentence-transformers' and PyLate's
  std::string path;
};
Module module_of(const std::string& type, const std::string& path);

/// Those of modules.json; none without the file.
std::vector<Module> listed_modules(ModelFolder& folder);

/// Whether the tokens' states go through a Dense and are not pooled.
bool makes_token_vectors(const std::vector<Module>& modules);

/// A file or folder of a module. Throws ModelError unless it is in the model's own folder.
ModelPath place_of(const ModelFolder& folder, const std::filesystem::path& path);

/// A tensor of a module's weights. Throws ModelError unless it has this shape and finite numbers.
std::vector<float> read_tensor(const ModelPath& folder, const std::string& name,
                               const std::vector<int64_t>& shape);

/// Refuses a module that reads or makes anything but `value`, "sentence_embedding" or
/// "token_embeddings".
void require_names(const ConfigReader& reader, const char* value);

/// A Dense, by its config.json and the weights in its folder, for vectors of this width.
Projection read_dense(const ConfigReader& reader, const ModelPath& folder, int64_t width,
                      const char* value);

}  // namespace phasor::internal
