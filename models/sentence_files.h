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

}  // namespace phasor::internal
