// Shared by all tokenizers: special tokens around and inside texts, pairs of texts, the limit on
// tokens, and bytes that are not UTF-8.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "phasor/tokenizer.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {

/// A special token, or a text where `piece` is empty, with its token type.
struct TemplateItem {
  std::string piece = {};
  int32_t type = 0;
};
/// The layout of one or two texts and their special tokens: "[CLS]", the text, "[SEP]".
using Template = std::vector<TemplateItem>;

/// [CLS] a [SEP] b [SEP], with token type 1 from b on.
Template bert_pair(const std::string& cls, const std::string& sep);
/// <s> a </s></s> b </s>
Template roberta_pair(const std::string& cls, const std::string& sep);

/// The settings of tokenizers of all kinds; each kind adds its model's.
struct CommonSpec {
  std::string file = {};                 // the vocabulary's or the model's path, for messages
  std::vector<std::string> prefix = {};  // special tokens before a text
  std::vector<std::string> suffix = {};  // and after it
  Template pair = {};                    // what two texts become; empty: they are refused
  std::string mask = {};                 // empty: none
  std::vector<std::string> notes = {};   // see Tokenizer::notes()
  std::vector<AddedToken> added = {};    // tokens that tokenizer_config.json adds or repeats
  std::vector<AddedToken> written = {};  // tokens that tokenizer.json adds, with their rules
  bool truncate_left = false;            // see TruncationSide::kTokenizer
  bool trim_offsets = false;             // tokens' spans begin after the spaces that they take
  Normalizer normalizer = {};            // of a text before it is split
};

/// The tokens of a text while they are made.
struct TokenList : Tokens {
  bool ids_only = false;                // TokenizeOptions::ids_only
  bool aligned = false;                 // there are offsets
  size_t text_bytes = 0;                // of the text
  size_t room = std::string::npos / 2;  // bytes that its pieces may still take

  /// Throws ModelError, naming the token, where there is no room for its piece. `from`: what it was
  /// made of.
  void append(int32_t id, std::string_view piece, const AlignedView& from) {
    ids.push_back(id);
    if (aligned) offsets.push_back(from.span());
    if (ids_only) return;
    const size_t bytes = bytes_of(piece);
    if (bytes > room) no_room_for(piece);
    room -= bytes;
    pieces.emplace_back(piece);
  }
  /// Keeps the first.
  void resize(size_t size) {
    ids.resize(size);
    if (aligned) offsets.resize(size);
    if (continues_word.size() > size) continues_word.resize(size);
    for (; pieces.size() > size; pieces.pop_back()) room += bytes_of(pieces.back());
  }
  /// Keeps all but the first.
  void drop_front(int64_t count) {
    ids.erase(ids.begin(), ids.begin() + count);
    if (aligned) offsets.erase(offsets.begin(), offsets.begin() + count);
    if (!continues_word.empty()) {
      continues_word.resize(ids.size() + static_cast<size_t>(count));
      continues_word.erase(continues_word.begin(), continues_word.begin() + count);
    }
    if (!ids_only) pieces.erase(pieces.begin(), pieces.begin() + count);
  }

 private:
  static size_t bytes_of(std::string_view piece) { return sizeof(std::string) + piece.size(); }
  [[noreturn]] void no_room_for(std::string_view piece) const;
};

class SpecialTokens {
 public:
  /// Appends the tokens of a part of a text without special tokens. `after_special`: it follows a
  /// special token of the text.
  using EncodePart =
      std::function<void(const AlignedView& part, bool after_special, TokenList& tokens)>;

  /// The tokens round a text, round a pair, and `others` may be written in a text and take the
  /// white space before them; added ones have rules of their own. Throws ModelError for a token
  /// that is not in `vocabulary`.
  SpecialTokens(const Vocabulary& vocabulary, const CommonSpec& spec,
                const std::vector<std::string>& others);

  Tokens encode(std::string_view text, const TokenizeOptions& options,
                const EncodePart& encode_part) const;
  /// Throws InvalidArgument if there is no template for pairs.
  Tokens encode_pair(std::string_view first, std::string_view second,
                     const TokenizeOptions& options, const EncodePart& encode_part) const;

  /// Whether `piece` is a special token that may be written in a text.
  bool contains(std::string_view piece) const;
  /// The size of `vocabulary` without the special and added tokens at its end.
  int64_t text_size(const Vocabulary& vocabulary) const;

 private:
  struct Item {
    TemplateItem item;
    int32_t id = 0;
  };
  using Items = std::vector<Item>;

  static Items with_ids(const Template& items, const Vocabulary& vocabulary);
  TokenList encode_text(std::string_view text, const TokenizeOptions& options,
                        const EncodePart& encode_part) const;
  static int64_t room_for_text(const Items& items, const TokenizeOptions& options);
  /// Drops tokens of the text beyond `size`; returns their number.
  int64_t cut_to(int64_t size, const TokenizeOptions& options, TokenList& tokens) const;
  static Tokens fill(const Items& items, const TokenizeOptions& options,
                     std::span<TokenList> texts);

  const Items single_, pair_;
  const std::vector<AddedToken> all_;  // that may be written in a text
  const AddedTokens written_;
  const std::set<std::string, std::less<>> specials_;
  const bool cut_left_;
};

}  // namespace phasor::internal
