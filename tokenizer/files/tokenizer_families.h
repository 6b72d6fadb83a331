// The table of SentencePiece tokenizers: files, numbering and special tokens of each class.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "files/config_reader.h"
#include "tokenizer/sentencepiece_tokenizer.h"

namespace phasor::internal {

/// The languages of a multilingual tokenizer. A special token "{lang}" of its row stands for the
/// chosen language's token: `before` + code + `after`.
struct TokenizerLanguages {
  std::vector<std::string> codes = {};
  std::string fallback = {};  // if none is given; empty: "{lang}" is then left out
  std::string before = {};
  std::string after = {};

  std::string piece(const std::string& code) const { return before + code + after; }
  std::vector<std::string> pieces() const;
};

/// A tokenizer class of Transformers: a row of data.
struct TokenizerFamily {
  std::string tokenizer_class;           // without "Fast"
  std::vector<std::string> model_types;  // of config.json, if nothing else names the class
  std::string model_file;
  bool has_vocab_json = false;
  SentencePieceSpec spec;  // all but file, model and vocabulary
  TokenizerLanguages languages = {};
  /// Keys of tokenizer_config.json that only this class has.
  std::function<void(const ConfigReader&, SentencePieceSpec&)> read_options = {};
};

std::vector<TokenizerFamily> tokenizer_families();
/// The row of the class, without "Fast".
std::optional<TokenizerFamily> find_tokenizer_family(std::string_view tokenizer_class);

/// The language codes of multilingual tokenizers, in the order of the tokens' ids.
std::vector<std::string> m2m100_languages();   // "en"
std::vector<std::string> mbart_languages();    // "en_XX"
std::vector<std::string> mbart50_languages();  // mBART's and 27 more
std::vector<std::string> nllb_languages();     // "eng_Latn"
/// For messages: all codes, or the twelve most similar to `like` and the number of all.
std::string list_languages(std::vector<std::string> codes, std::string_view like);

}  // namespace phasor::internal
