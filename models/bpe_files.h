// The files of a byte-level BPE tokenizer: tokenizer.json, or vocab.json and merges.txt.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "models/config_reader.h"
#include "phasor/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {

/// `root` is the content of `file`, a tokenizer.json; `config` is tokenizer_config.json.
std::shared_ptr<const Tokenizer> load_bpe_json(const std::filesystem::path& file,
                                               const nlohmann::json& root,
                                               const ConfigReader& config);

/// vocab.json and merges.txt, with RoBERTa's special tokens unless `config`, tokenizer_config.json,
/// names others; `added` are its added tokens.
std::shared_ptr<const Tokenizer> load_bpe(const std::filesystem::path& folder,
                                          const ConfigReader& config,
                                          std::vector<AddedToken> added);

}  // namespace phasor::internal
