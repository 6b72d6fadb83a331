// tokenizer_config.json and the files beside it: what they say of a tokenizer, whatever its model.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "files/model_folder.h"
#include "phasor/tokenizer.h"
#include "tokenizer/special_tokens.h"

namespace phasor::internal {

struct TokenizerSettings {
  ConfigReader config;  // tokenizer_config.json
  /// special_tokens_map.json, which Transformers reads where `config` has no added_tokens_decoder;
  /// otherwise `config`.
  ConfigReader specials;
  /// The class without "Fast"; empty if no particular one is named: tokenizer.json says all.
  std::string tokenizer_class = {};
  bool follows_json = false;               // a class is named that only stands for tokenizer.json
  std::vector<AddedToken> added = {};      // to the vocabulary; an id of −1 is the next one
  std::optional<bool> truncate_left = {};  // truncation_side
  std::optional<bool> gives_types =
      {};                   // whether pairs get token types, by class and model_input_names
  bool lower_case = false;  // texts are lower-cased first: sentence-transformers says so
};

/// Reads tokenizer_config.json, special_tokens_map.json, added_tokens.json and
/// sentence-transformers' do_lower_case.
TokenizerSettings read_tokenizer_settings(ModelFolder& folder);

/// The name of the special token under `key`, which may be written as {"content": "[MASK]", …};
/// `piece` stays if there is none.
void read_special(const TokenizerSettings& settings, std::string_view key, std::string& piece);

/// The special tokens of a class of Transformers.
struct SpecialNames {
  std::string cls, sep, unk, pad, mask;
};
/// Replaces those that the files name.
void read_specials(const TokenizerSettings& settings, SpecialNames& names);

/// An entry of a list of added tokens, whose id is `id`.
AddedToken read_added_token(const ConfigReader& entry, int64_t id);

/// The file of sentence-transformers that says how texts are prepared, sentence_bert_config.json or
/// one of its older names; of these, the first that is there, otherwise the first.
std::string sentence_file(const ModelFolder& folder);

}  // namespace phasor::internal
