// tokenizer.json, the format of Hugging Face's tokenizers: all of it but the model, which
// readers.h reads.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/config_reader.h"
#include "phasor/tokenizer.h"
#include "tokenizer/bert_words.h"
#include "tokenizer/files/tokenizer_settings.h"
#include "tokenizer/metaspace.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/split_pattern.h"

namespace phasor::internal {

/// The steps from a text to its tokens. Each model takes the steps that it can follow, and refuses
/// the rest.
struct TokenizerJson {
  std::vector<NormalizerStep> steps = {};    // of the normalizer
  std::optional<BertWordOptions> bert = {};  // BertNormalizer
  bool charsmap = false;                     // a step is Precompiled: SentencePiece's rules

  struct ByteLevel {
    bool add_prefix_space = true;
    bool split_words = true;
  };
  bool bert_words = false;  // BertPreTokenizer
  bool whitespace_split = false;
  std::vector<std::shared_ptr<const SplitPattern>> splits = {};  // by Split and Digits, in order
  bool replaces_spaces = false;                                  // no space is left to split at
  std::optional<ByteLevel> byte_level = {};
  std::optional<MetaspaceRules> metaspace = {};

  bool has_template = false;
  bool trim_offsets = false;             // see CommonSpec
  std::vector<std::string> prefix = {};  // special tokens before a text
  std::vector<std::string> suffix = {};  // and after it
  Template pair = {};
  std::vector<AddedToken> named = {};  // the templates' tokens and their ids
  std::vector<AddedToken> added = {};
  bool truncate_left = false;
};

/// "WordPiece", "Unigram", "BPE", …: the model's type in a tokenizer.json; empty if it has none.
std::string model_of_tokenizer_json(const ConfigReader& root);

/// Reads normalizer, pre_tokenizer, post_processor, truncation and added_tokens. Throws ModelError
/// with the name of a component that is not known.
TokenizerJson read_tokenizer_json(const ConfigReader& root);

/// "added_tokens": [{"id": 0, "content": "[PAD]", …}, …].
std::vector<AddedToken> read_added_tokens(const ConfigReader& root);

/// The model's "vocab": {"piece": id, …}.
PieceIds read_vocab_object(const ConfigReader& model);

/// What tokenizer_config.json and tokenizer.json, named `file` in messages, say to tokenizers of
/// all kinds; the former goes first. Without a tokenizer.json, `parts` are empty.
CommonSpec common_spec(const std::string& file, const TokenizerSettings& settings,
                       const TokenizerJson& parts);
/// A type of component, such as {"type": "NFC"}, and how it is read.
struct Component {
  std::string_view type;
  void (*read)(const ConfigReader& part, TokenizerJson& result);
};
/// The types of post_processor; see json_template.cc.
std::span<const Component> post_processors();

/// Throws ModelError if a template's token has another id in `tokenizer`.
void check_named(const TokenizerJson& parts, const Tokenizer& tokenizer, const std::string& file);

/// "KEY is VALUE; phasor follows MUST_BE; …", of the code kUnsupported.
[[noreturn]] void refuse_component(const ConfigReader& part, std::string_view key,
                                   std::string_view must_be);

}  // namespace phasor::internal
