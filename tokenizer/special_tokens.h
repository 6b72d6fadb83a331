// What tokenizers share: special tokens around and inside a text, the limit on tokens, and bytes
// that are not UTF-8.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "phasor/tokenizer.h"
#include "tokenizer/longest_prefix.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {

class SpecialTokens {
 public:
  /// Appends the tokens of a part of a text without special tokens. `after_special`: it follows a
  /// special token of the text.
  using EncodePart = std::function<void(std::string_view part, bool after_special, Tokens& tokens)>;

  /// `prefix` and `suffix` are added to every text; they and `others` may be written in a text.
  /// Throws ModelError for one that is not in `vocabulary`.
  SpecialTokens(const Vocabulary& vocabulary, const std::vector<std::string>& prefix,
                const std::vector<std::string>& suffix, const std::vector<std::string>& others);

  Tokens encode(std::string_view text, const TokenizeOptions& options,
                const EncodePart& encode_part) const;

  /// Whether `piece` is one of the tokens that may be written in a text.
  bool contains(std::string_view piece) const;

 private:
  using List = std::vector<std::pair<std::string, int32_t>>;

  static void append(const List& specials, Tokens& tokens);
  void check_room(int64_t max_tokens) const;
  void encode_parts(std::string_view text, const EncodePart& encode_part, Tokens& tokens) const;

  List prefix_, suffix_;
  LongestPrefix spelled_;
};

}  // namespace phasor::internal
