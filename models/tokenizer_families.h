// The table of SentencePiece tokenizers: files, numbering and special tokens of each class.
#pragma once

#include <string>
#include <vector>

#include "tokenizer/sentencepiece_tokenizer.h"

namespace phasor {

/// A tokenizer class of Transformers: a row of data. "{lang}" in the special tokens stands for
/// tokenizer_config.json's src_lang.
struct TokenizerFamily {
  std::string tokenizer_class;  // without "Fast"
  std::string model_file;
  bool has_vocab_json = false;
  SentencePieceSpec spec;  // all but file, model and vocabulary
  std::string default_language = {};
};

std::vector<TokenizerFamily> tokenizer_families();

}  // namespace phasor
