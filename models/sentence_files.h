// sentence-transformers' files in a model's folder: how one vector of a text is made.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "phasor/pooling.h"

namespace phasor::internal {

/// Reads modules.json and the modules it names (Pooling, Dense, Normalize),
/// sentence_bert_config.json and config_sentence_transformers.json. Without any of them: the mean,
/// not normalised. Adds to `notes` what users should know. Throws ModelError naming file, key and
/// value if they need something that phasor does not implement.
SentenceConfig read_sentence_config(const std::filesystem::path& folder, int64_t d_model,
                                    std::vector<std::string>& notes);

/// Throws ModelError if a folder whose files do not say how sentence vectors are made is a ColBERT,
/// which has a vector for each token: says config.json, or ColBERT's own artifact.metadata, or its
/// map of the states, which is among `unused_tensors`.
void refuse_multi_vector(const std::filesystem::path& folder,
                         const std::vector<std::string>& unused_tensors);

}  // namespace phasor::internal
