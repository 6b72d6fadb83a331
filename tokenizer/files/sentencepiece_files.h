// The files of a SentencePiece tokenizer: its model, vocab.json, and the configuration of both.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "files/config_reader.h"
#include "files/files.h"
#include "phasor/tokenizer.h"
#include "tokenizer/files/tokenizer_families.h"
#include "tokenizer/files/tokenizer_settings.h"

namespace phasor::internal {

/// The row of the class, without "Fast".
std::optional<TokenizerFamily> find_tokenizer_family(std::string_view tokenizer_class);

/// Throws InvalidArgument for an unknown language.
std::shared_ptr<const Tokenizer> load_family(const ModelPath& folder, TokenizerFamily family,
                                             const TokenizerSettings& settings,
                                             const LoadOptions& options);

/// phasor's own format: everything is in config.json's "tokenizer".
std::shared_ptr<const Tokenizer> load_spelled_out(const ModelPath& folder,
                                                  const ConfigReader& reader);

/// Only the model: no special tokens, and SentencePiece's own ids.
std::shared_ptr<const Tokenizer> load_plain(const ModelPath& model);

}  // namespace phasor::internal
