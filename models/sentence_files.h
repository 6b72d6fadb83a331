// sentence-transformers' files in a model's folder: how texts are prepared, and how one vector
// of a text is made.
#pragma once

#include <string>
#include <vector>

#include "models/model_folder.h"
#include "phasor/pooling.h"

namespace phasor::internal {

/// How texts are prepared: the length of tokenizer_config.json, sentence_bert_config.json and
/// processing_kwargs, and the prompts of config_sentence_transformers.json. Throws ModelError naming
/// file, key and value if they ask for something that phasor does not implement.
TextConfig read_text_config(ModelFolder& folder);

/// Reads modules.json and the modules it names (Pooling, Dense, Normalize). Without it: the mean,
/// not normalised. Adds to `notes` what users should know. Throws as read_text_config() does.
SentenceConfig read_sentence_config(ModelFolder& folder, int64_t d_model, const TextConfig& text,
                                    std::vector<std::string>& notes);

}  // namespace phasor::internal
