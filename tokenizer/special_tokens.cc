// Finds special tokens in a text and leaves what lies between them to the tokenizer.
#include "tokenizer/special_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "phasor/errors.h"
#include "tokenizer/utf8.h"

namespace phasor {
namespace {

std::string_view without_trailing_spaces(std::string_view text) {
  return text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
}

}  // namespace

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary, const std::vector<std::string>& prefix,
                             const std::vector<std::string>& suffix,
                             const std::vector<std::string>& others) {
  const auto add = [&](const std::vector<std::string>& pieces, List& list) {
    for (const std::string& piece : pieces) {
      if (!piece.empty()) list.push_back({piece, vocabulary.find(piece)});
    }
  };
  add(prefix, prefix_);
  add(suffix, suffix_);
  for (const auto* const pieces : {&prefix, &suffix, &others}) add(*pieces, spelled_);
  std::stable_sort(spelled_.begin(), spelled_.end(),
                   [](const auto& a, const auto& b) { return a.piece.size() > b.piece.size(); });
}

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
        "the text is empty and this tokenizer adds no special tokens; give at least one word");
  }
  return tokens;
}

bool SpecialTokens::contains(std::string_view piece) const {
  return std::any_of(spelled_.begin(), spelled_.end(),
                     [piece](const SpecialToken& special) { return special.piece == piece; });
}

const SpecialTokens::SpecialToken* SpecialTokens::special_at(std::string_view text) const {
  for (const SpecialToken& special : spelled_) {
    if (text.starts_with(special.piece)) return &special;
  }
  return nullptr;
}

void SpecialTokens::encode_parts(std::string_view text, const EncodePart& encode_part,
                                 Tokens& tokens) const {
  bool after_special = false;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const SpecialToken* const special = special_at(text.substr(at));
    if (special == nullptr) {
      ++at;
      continue;
    }
    // The spaces before a special token belong to it.
    encode_part(without_trailing_spaces(text.substr(begin, at - begin)), after_special, tokens);
    tokens.ids.push_back(special->id);
    tokens.pieces.push_back(special->piece);
    after_special = true;
    begin = at += special->piece.size();
  }
  encode_part(text.substr(begin), after_special, tokens);
}

}  // namespace phasor
