// sentence-transformers' files in a model's folder: how texts are prepared, and how one vector
// of a text is made.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "files/model_folder.h"
#include "phasor/pooling.h"

namespace phasor::internal {

/// How texts are prepared: the length of tokenizer_config.json, sentence_bert_config.json and
/// processing_kwargs, and the prompts of config_sentence_transformers.json. Throws ModelError
/// naming file, key and value if they ask for something that phasor does not implement.
TextConfig read_text_config(ModelFolder& transformer, ModelFolder& folder);

/// The folder of the Transformer that modules.json names: `folder` itself, or, in models of old,
/// one in it, such as "0_Transformer".
ModelPath transformer_of(const ModelPath& folder);

/// Reads modules.json, the modules that it names (Pooling, Dense, LayerNorm, Normalize, Dropout),
/// and how vectors are shortened and compared. Without modules.json 1_Pooling is read; without both
/// it is the mean, not normalised. Adds to `notes` what users should know. Throws as
/// read_text_config() does.
SentenceConfig read_sentence_config(ModelFolder& folder, int64_t d_model, const TextConfig& text,
                                    std::vector<std::string>& notes);

/// Throws ModelError if a folder whose files do not say how sentence vectors are made is a ColBERT,
/// which has a vector for each token: says config.json, or ColBERT's own artifact.metadata, or its
/// map of the states, which is among `unused_tensors`.
void refuse_multi_vector(ModelFolder& folder, const std::vector<std::string>& unused_tensors);

}  // namespace phasor::internal
