// The files of a WordPiece tokenizer: vocab.txt or tokenizer.json, and tokenizer_config.json.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "models/config_reader.h"
#include "phasor/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {

/// Takes the pieces from vocab.txt, otherwise from tokenizer.json, and each option from
/// tokenizer_config.json (`config`), otherwise from tokenizer.json, otherwise the default of
/// `kind`: "MPNet", "RoFormer", or BERT's for any other.
std::shared_ptr<const Tokenizer> load_wordpiece(const std::filesystem::path& folder,
                                                std::string_view kind, const ConfigReader& config,
                                                std::vector<AddedToken> added);

}  // namespace phasor::internal
