// The files of a WordPiece tokenizer: vocab.txt or tokenizer.json, and tokenizer_config.json.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/config_reader.h"
#include "phasor/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {

/// "WordPiece", "Unigram", "BPE", …: the model's type in a tokenizer.json; empty if it has none.
std::string model_of_tokenizer_json(const nlohmann::json& root);

/// Takes the pieces from vocab.txt, otherwise from tokenizer.json, and each option from
/// tokenizer_config.json (`config`), otherwise from tokenizer.json, otherwise BERT's default.
std::shared_ptr<const Tokenizer> load_wordpiece(const std::filesystem::path& folder,
                                                const ConfigReader& config,
                                                std::vector<AddedToken> added);

}  // namespace phasor::internal
