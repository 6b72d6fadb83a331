// The files of a byte-level BPE tokenizer: tokenizer.json, or vocab.json and merges.txt.
#pragma once

#include <filesystem>
#include <memory>

#include "files/model_folder.h"
#include "phasor/tokenizer.h"
#include "tokenizer/files/tokenizer_settings.h"

namespace phasor::internal {

/// The tokenizer.json of `folder`.
std::shared_ptr<const Tokenizer> load_bpe_json(ModelFolder& folder,
                                               const TokenizerSettings& settings);

/// vocab.json and merges.txt, with RoBERTa's special tokens unless `settings` name others.
std::shared_ptr<const Tokenizer> load_bpe(const ModelPath& folder,
                                          const TokenizerSettings& settings);

}  // namespace phasor::internal
