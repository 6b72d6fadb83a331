// The files of a WordPiece tokenizer: vocab.txt or tokenizer.json, and tokenizer_config.json.
#pragma once

#include <memory>
#include <string_view>

#include "files/model_folder.h"
#include "phasor/tokenizer.h"
#include "tokenizer/files/tokenizer_settings.h"

namespace phasor::internal {

/// As Transformers 5 does it: the pieces and added tokens are those of tokenizer.json, otherwise
/// those of vocab.txt. A class (`kind`: "MPNet", "RoFormer", or BERT's for any other) takes each
/// option from tokenizer_config.json and the special tokens round a text from its own rules; where
/// no class is named, tokenizer.json says both.
std::shared_ptr<const Tokenizer> load_wordpiece(ModelFolder& folder, std::string_view kind,
                                                const TokenizerSettings& settings);

}  // namespace phasor::internal
