// The readers of a tokenizer's files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "files/files.h"
#include "files/model_folder.h"
#include "phasor/tokenizer.h"
#include "tokenizer/files/tokenizer_families.h"
#include "tokenizer/files/tokenizer_settings.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {

/// Like Tokenizer::load().
std::shared_ptr<const Tokenizer> load_tokenizer(ModelFolder& folder, const LoadOptions& options);

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

/// The pairs of {"piece": id, …} in the file's order. Throws ModelError for anything else.
PieceIds read_vocab_json(const ModelPath& file);

/// Visits the lines of a file in UTF-8 with their numbers, from 1, however they end. Throws
/// ModelError for another encoding, and for more than kMaxPieces lines.
void for_each_line(const ModelPath& file,
                   const std::function<void(std::string_view line, int64_t number)>& visit);

}  // namespace phasor::internal
