// The readers of a tokenizer's files, by the kind of its model.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "files/model_folder.h"
#include "phasor/tokenizer.h"
#include "tokenizer/files/tokenizer_families.h"
#include "tokenizer/files/tokenizer_settings.h"

namespace phasor::internal {

/// WordPiece: vocab.txt or tokenizer.json. As in Transformers 5, the pieces and added tokens are
/// those of tokenizer.json, otherwise those of vocab.txt. A class (`kind`: "MPNet", "RoFormer", or
/// BERT's for any other) takes each option from tokenizer_config.json and the special tokens round
/// a text from its own rules; where no class is named, tokenizer.json says both.
std::shared_ptr<const Tokenizer> load_wordpiece(ModelFolder& folder, std::string_view kind,
                                                const TokenizerSettings& settings);

/// Byte-level BPE: tokenizer.json.
std::shared_ptr<const Tokenizer> load_bpe_json(ModelFolder& folder,
                                               const TokenizerSettings& settings);
/// vocab.json and merges.txt, with RoBERTa's special tokens unless `settings` name others.
std::shared_ptr<const Tokenizer> load_bpe(const ModelPath& folder,
                                          const TokenizerSettings& settings);

/// Unigram: tokenizer.json. `model_file` is the SentencePiece model beside it, which may be missing
/// or empty; a note says so where it has other pieces.
std::shared_ptr<const Tokenizer> load_unigram_json(ModelFolder& folder,
                                                   const TokenizerSettings& settings,
                                                   const std::string& model_file);

/// SentencePiece: its model, and vocab.json in some families. Throws InvalidArgument for an unknown
/// language.
std::shared_ptr<const Tokenizer> load_family(const ModelPath& folder, TokenizerFamily family,
                                             const TokenizerSettings& settings,
                                             const LoadOptions& options);
/// phasor's own format: everything is in config.json's "tokenizer".
std::shared_ptr<const Tokenizer> load_spelled_out(const ModelPath& folder,
                                                  const ConfigReader& reader);
/// Only the model: no special tokens, and SentencePiece's own ids.
std::shared_ptr<const Tokenizer> load_plain(const ModelPath& model);

}  // namespace phasor::internal
