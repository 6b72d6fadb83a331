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

}  // namespace

SentencePieceText::SentencePieceText(const SentencePieceRules& rules,
                                     const std::vector<ModelPiece>& pieces)
    : rules_(rules), user_defined_(user_defined(pieces)) {}

/// The length of the front of `text` that one rule replaces, and its replacement.
Charsmap::Rule SentencePieceText::rule(std::string_view text) const {
  size_t kept = user_defined_.longest(text).size;
  if (kept == 0) {
    const Charsmap::Rule rule = rules_.charsmap ? rules_.charsmap->longest(text) : Charsmap::Rule();
    if (rule.length > 0) return rule;
    kept = character_size(text);
  }
  return {kept, text.substr(0, kept)};
}

AlignedText SentencePieceText::normalized(const AlignedView& text, bool joined, size_t most) const {
  const bool collapse = rules_.collapse_spaces;
  const std::string_view space = rules_.mark_spaces ? kSpaceMark : " ";
  AlignedText result = AlignedText::of(text);
  std::string_view rest = text.text;
  if (collapse && !joined) {
    while (!rest.empty()) {
      const auto [length, replacement] = rule(rest);
      if (replacement != " ") break;
      rest.remove_prefix(length);
    }
  }
  if (rest.empty()) return result;
  const size_t size = rest.size();
  result.reserve(size + size / 2);
  if (rules_.add_space && !rules_.space_at_end && !joined) {
    result.append(space, text.source_of(rest));
  }
  bool after_space = collapse && !joined;
  while (!rest.empty()) {
    const Source source = text.source_of(rest);
    auto [length, replacement] = rule(rest);
    rest.remove_prefix(length);
    while (after_space && replacement.starts_with(' ')) replacement.remove_prefix(1);
    if (replacement.empty()) continue;
    after_space = collapse && replacement.ends_with(' ');
    for (const char& c : replacement)
      result.append(c == ' ' ? space : std::string_view(&c, 1), source);
    if (result.size() > most) {
      refuse<ModelError>(
          "the rules of this SentencePiece model make more than {} bytes of a text of {}", most,
          size);
    }
  }
  uint32_t end = text.source_before(rest).end;
  while (collapse && result.text().ends_with(space)) {
    const AlignedView spaces = result;
    end = spaces.source_of(spaces.text.substr(spaces.text.size() - space.size())).begin;
    result.resize(result.size() - space.size());
  }
  if (rules_.add_space && rules_.space_at_end) result.append(space, {end, end});
  result.close_gaps(end);
  return result;
}

}  // namespace phasor::internal
