// sentence-transformers' files in a model's folder: how texts are prepared, and how one vector
// of a text is made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "files/model_folder.h"
#include "models/tensor_files.h"
#include "phasor/config.h"
#include "phasor/model.h"
#include "phasor/pooling.h"
#include "phasor/sparse.h"
#include "phasor/token_vectors.h"

namespace phasor::internal {

/// How texts are prepared: the length of tokenizer_config.json, sentence_bert_config.json and
/// processing_kwargs, and the prompts of config_sentence_transformers.json. Throws ModelError
/// naming file, key and value if they ask for something that phasor does not implement.
TextConfig read_text_config(ModelFolder& transformer, ModelFolder& folder);

/// The folder of the Transformer that modules.json or, of documents, a Router names: `folder`
/// itself, or one in it, such as "0_Transformer".
ModelPath transformer_of(const ModelPath& folder);

/// Reads modules.json, the modules that it names (Pooling, Dense, LayerNorm, Normalize, Dropout),
/// and how vectors are shortened and compared. Without modules.json 1_Pooling is read; without both
/// it is the mean, not normalised. Adds to `notes` what users should know. Throws as
/// read_text_config() does.
SentenceConfig read_sentence_config(ModelFolder& folder, int64_t d_model, const TextConfig& text,
                                    std::vector<std::string>& notes);

/// How modules.json's SpladePooling, in the place of Pooling, or BGE-M3's sparse_linear.pt makes
/// sparse vectors; empty where neither is there. Throws as read_text_config() does.
std::optional<SparseConfig> read_sparse_config(ModelFolder& folder, const ModelConfig& model,
                                               bool has_mlm_head);

/// How modules.json's Dense without a Pooling (sentence-transformers' MultiVectorEncoder, PyLate),
/// ColBERT's artifact.metadata, or BGE-M3's colbert_linear.pt makes a vector of each token; empty
/// where none is there. Throws as read_text_config() does, and what loading the tokenizer threw.
std::optional<TokenVectorConfig> read_token_vector_config(ModelFolder& transformer,
                                                          ModelFolder& folder, const Model& model,
                                                          const TensorFiles& weights,
                                                          bool is_colbert);

/// Whether the folder's files say what becomes of the Transformer's states.
bool has_modules(const ModelFolder& folder);

/// The folder of the Transformer for documents in router_config.json; empty: the model's own.
std::string routed_transformer(ModelFolder& folder);

inline constexpr const char* kColbertMetadata = "artifact.metadata";

/// What says that a folder without modules is ColBERT's own, for messages: config.json, or
/// artifact.metadata, or its map of the states among the weights. Empty: nothing.
std::string sign_of_colbert(ModelFolder& folder, const TensorFiles& weights);

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
