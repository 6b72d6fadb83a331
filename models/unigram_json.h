// A Unigram model of tokenizer.json.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "models/config_reader.h"
#include "phasor/tokenizer.h"

namespace phasor::internal {

/// `root` is the content of `file`, a tokenizer.json; `config` is tokenizer_config.json.
std::shared_ptr<const Tokenizer> load_unigram_json(const std::filesystem::path& file,
                                                   const nlohmann::json& root,
                                                   const ConfigReader& config);

}  // namespace phasor::internal
