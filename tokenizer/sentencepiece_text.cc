#include "tokenizer/sentencepiece_text.h"

#include <utility>

#include "files/refuse.h"
#include "files/utf8.h"

namespace phasor::internal {
namespace {

PieceTrie user_defined(const std::vector<ModelPiece>& pieces) {
  std::vector<std::pair<std::string_view, int32_t>> found;
  for (const ModelPiece& piece : pieces) {
    if (piece.type == ModelPiece::kUserDefined) found.emplace_back(piece.text, 0);
  }
  return PieceTrie(std::move(found));
}

SentencePieceRules without_charsmap(SentencePieceRules rules) {
  rules.charsmap = {};
  return rules;
}

}  // namespace

SentencePieceText::SentencePieceText(const SentencePieceRules& rules,
                                     const std::vector<ModelPiece>& pieces)
    : rules_(without_charsmap(rules)),
      charsmap_(rules.charsmap),
      user_defined_(user_defined(pieces)) {}

/// The length of the front of `text` that one rule replaces, and its replacement.
Charsmap::Rule SentencePieceText::rule(std::string_view text) const {
  size_t kept = 0;
  if (!user_defined_.empty()) {
    user_defined_.for_each_prefix(text, [&](size_t size, int32_t) { kept = size; });
  }
  if (kept == 0) {
    const Charsmap::Rule rule = charsmap_.longest(text);
    if (rule.length > 0) return rule;
    kept = character_size(text);
  }
  return {kept, text.substr(0, kept)};
}

std::string SentencePieceText::normalized(std::string_view text, bool joined, size_t most) const {
  const bool collapse = rules_.collapse_spaces;
  const std::string_view space = rules_.mark_spaces ? kSpaceMark : " ";
  std::string result;
  if (collapse && !joined) {
    while (!text.empty()) {
      const auto [length, replacement] = rule(text);
      if (replacement != " ") break;
      text.remove_prefix(length);
    }
  }
  if (text.empty()) return result;
  const size_t size = text.size();
  result.reserve(text.size() + text.size() / 2);
  if (rules_.add_space && !rules_.space_at_end && !joined) result += space;
  bool after_space = collapse && !joined;
  while (!text.empty()) {
    auto [length, replacement] = rule(text);
    text.remove_prefix(length);
    while (after_space && replacement.starts_with(' ')) replacement.remove_prefix(1);
    if (replacement.empty()) continue;
    after_space = collapse && replacement.ends_with(' ');
    for (const char c : replacement) c == ' ' ? result += space : result += c;
    if (result.size() > most) {
      refuse<ModelError>(
          "the rules of this SentencePiece model make more than {} bytes of a text of {}", most,
          size);
    }
  }
  while (collapse && result.ends_with(space)) result.resize(result.size() - space.size());
  if (rules_.add_space && rules_.space_at_end) result += space;
  return result;
}

}  // namespace phasor::internal
