#include "tokenizer/special_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "phasor/errors.h"
#include "tokenizer/utf8.h"

namespace phasor::internal {
namespace {

std::string_view without_trailing_spaces(std::string_view text) {
  return text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
}

/// All pieces of `lists` except empty ones.
std::vector<std::pair<std::string, int32_t>> with_ids(
    std::initializer_list<const std::vector<std::string>*> lists, const Vocabulary& vocabulary) {
  std::vector<std::pair<std::string, int32_t>> all;
  for (const auto* const pieces : lists) {
    for (const std::string& piece : *pieces) {
      if (!piece.empty()) all.emplace_back(piece, vocabulary.find(piece));
    }
  }
  return all;
}

}  // namespace

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary, const std::vector<std::string>& prefix,
                             const std::vector<std::string>& suffix,
                             const std::vector<std::string>& others)
    : prefix_(with_ids({&prefix}, vocabulary)),
      suffix_(with_ids({&suffix}, vocabulary)),
      spelled_(with_ids({&prefix, &suffix, &others}, vocabulary)) {}

void SpecialTokens::append(const List& specials, Tokens& tokens) {
  for (const auto& [piece, id] : specials) {
    tokens.ids.push_back(id);
    tokens.pieces.push_back(piece);
  }
}

void SpecialTokens::check_room(int64_t max_tokens) const {
  const auto special = static_cast<int64_t>(prefix_.size() + suffix_.size());
  if (max_tokens < 0 || (max_tokens > 0 && max_tokens < special)) {
    throw InvalidArgument(
        fmt::format("max_tokens is {}; it must be 0 (no limit) or at least {}, the number of "
                    "special tokens that every text gets",
                    max_tokens, std::max<int64_t>(special, 1)));
  }
}

Tokens SpecialTokens::encode(std::string_view text, const TokenizeOptions& options,
                             const EncodePart& encode_part) const {
  check_room(options.max_tokens);
  const ValidText valid = to_valid_utf8(text);
  Tokens tokens;
  tokens.invalid_bytes = valid.invalid_bytes;

  append(prefix_, tokens);
  if (options.parse_special) {
    encode_parts(valid.text, encode_part, tokens);
  } else {
    encode_part(valid.text, false, tokens);
  }
  const auto room = options.max_tokens - static_cast<int64_t>(suffix_.size());
  const auto size = static_cast<int64_t>(tokens.ids.size());
  if (options.max_tokens > 0 && size > room) {
    tokens.dropped = size - room;
    tokens.ids.resize(room);
    tokens.pieces.resize(room);
  }
  append(suffix_, tokens);
  if (tokens.ids.empty()) {
    throw InvalidArgument(
        "the text is empty and this tokenizer adds no special tokens; give at least one word",
        ErrorCode::kEmptyText);
  }
  return tokens;
}

bool SpecialTokens::contains(std::string_view piece) const {
  const LongestPrefix::Piece* const longest = spelled_.find(piece);
  return longest != nullptr && longest->text == piece;
}

void SpecialTokens::encode_parts(std::string_view text, const EncodePart& encode_part,
                                 Tokens& tokens) const {
  bool after_special = false;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const LongestPrefix::Piece* const special = spelled_.find(text.substr(at));
    if (special == nullptr) {
      ++at;
      continue;
    }
    // The spaces before a special token belong to it.
    encode_part(without_trailing_spaces(text.substr(begin, at - begin)), after_special, tokens);
    tokens.ids.push_back(special->id);
    tokens.pieces.push_back(special->text);
    after_special = true;
    begin = at += special->text.size();
  }
  encode_part(text.substr(begin), after_special, tokens);
}

}  // namespace phasor::internal
