// Tokens that are found in a text before it is split into words: special tokens such as "[MASK]",
// and pieces added to a vocabulary.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/longest_prefix.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {

class AddedTokens {
 public:
  /// `spelling` is how the token is written in the text.
  struct Spelled {
    AddedToken token;
    std::string spelling;
  };
  /// `token` is null for the text between tokens; a token's part has the white space that it takes.
  using Visit = std::function<void(std::string_view part, const AddedToken* token)>;

  explicit AddedTokens(std::vector<Spelled> tokens);

  /// Cuts `text`, valid UTF-8, into tokens and the parts between them, which may be empty. At each
  /// place the longest token counts. Special ones count in the first `special_bytes` alone, and are
  /// plain text after them.
  void split(std::string_view text, size_t special_bytes, const Visit& visit) const;

 private:
  const std::vector<Spelled> tokens_;
  const LongestPrefix spellings_;  // the ids are indices of tokens_
  const bool has_plain_;           // whether some are not special
};

}  // namespace phasor::internal
