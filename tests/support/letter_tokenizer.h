// A tokenizer whose ids are plain to see.
#pragma once

#include "tests/support/test.h"

namespace phasor {

/// "ab" is 0 2 3 1, and the pair "ab", "c" is 0 2 3 1 4 1 with the types 0 0 0 0 1 1; without
/// special tokens, the letters alone. A text that is too long loses letters of its longer part.
class LetterTokenizer : public Tokenizer {
 public:
  explicit LetterTokenizer(bool special_tokens = true) : special_tokens_(special_tokens) {}

  Tokens encode(std::string_view text, const TokenizeOptions& options) const override {
    if (text.empty() && !special_tokens_) throw InvalidArgument("the text is empty");
    return fill({std::string(text)}, options.max_tokens);
  }
  Tokens encode_pair(std::string_view first, std::string_view second,
                     const TokenizeOptions& options) const override {
    return fill({std::string(first), std::string(second)}, options.max_tokens);
  }
  int64_t vocab_size() const override { return 28; }
  std::string piece(int32_t id) const override {
    return std::string(1, static_cast<char>('a' + id - 2));
  }
  std::optional<int32_t> mask_id() const override { return std::nullopt; }
  std::string description() const override { return "letters"; }

 private:
  Tokens fill(std::vector<std::string> parts, int64_t max_tokens) const {
    Tokens tokens;
    const auto count = [&] {
      int64_t letters = special_tokens_ ? std::ssize(parts) + 1 : 0;
      for (const std::string& part : parts) letters += std::ssize(part);
      return letters;
    };
    while (max_tokens > 0 && count() > max_tokens) {
      const bool first = parts.size() == 1 || parts[0].size() > parts[1].size();
      parts[first ? 0 : 1].pop_back();
      ++tokens.dropped;
    }
    if (special_tokens_) tokens.ids.push_back(0);
    for (size_t i = 0; i < parts.size(); ++i) {
      for (const char letter : parts[i]) tokens.ids.push_back(letter - 'a' + 2);
      if (special_tokens_) tokens.ids.push_back(1);
      if (parts.size() > 1) tokens.token_types.resize(tokens.ids.size(), static_cast<int32_t>(i));
    }
    return tokens;
  }

  bool special_tokens_;
};

}  // namespace phasor
