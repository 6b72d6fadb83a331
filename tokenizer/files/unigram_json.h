// A Unigram model of tokenizer.json.
#pragma once

#include <memory>
#include <string>

#include "files/model_folder.h"
#include "phasor/tokenizer.h"
#include "tokenizer/files/tokenizer_settings.h"

namespace phasor::internal {

/// The tokenizer.json of `folder`. `model_file` is the SentencePiece model beside it, which may be
/// missing or empty; a note says so where it has other pieces.
std::shared_ptr<const Tokenizer> load_unigram_json(ModelFolder& folder,
                                                   const TokenizerSettings& settings,
                                                   const std::string& model_file);

}  // namespace phasor::internal
