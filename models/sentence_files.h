// sentence-transformers' files beside a checkpoint: how it makes one vector of a text.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "phasor/pooling.h"

namespace phasor::internal {

/// Reads modules.json and the modules it names (Pooling, Dense, Normalize),
/// sentence_bert_config.json and config_sentence_transformers.json. Without any of them: the mean,
/// not normalised. `notes` gets what a careful reader should know. Throws ModelError naming file,
/// key and value where they ask for something that phasor does not do.
SentenceConfig read_sentence_config(const std::filesystem::path& folder, int64_t d_model,
                                    std::vector<std::string>& notes);

}  // namespace phasor::internal
