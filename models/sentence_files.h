// sentence-transformers' files in a model's folder: how texts are prepared, and how one vector
// of a text is made.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "files/model_folder.h"
#include "phasor/config.h"
#include "phasor/pooling.h"
#include "phasor/sparse.h"

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

/// The folder of the Transformer for documents in router_config.json; empty: the model's own.
std::string routed_transformer(ModelFolder& folder);

/// Throws ModelError if a folder whose files do not say how sentence vectors are made is a ColBERT,
/// which has a vector for each token: says config.json, or ColBERT's own artifact.metadata, or its
/// map of the states, which is among `unused_tensors`.
void refuse_multi_vector(ModelFolder& folder, const std::vector<std::string>& unused_tensors);

}  // namespace phasor::internal
