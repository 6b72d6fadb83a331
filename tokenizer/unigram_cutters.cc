// What SentencePiece and Hugging Face's tokenizers do to a text before a Unigram model cuts it.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "tokenizer/normalizer.h"
#include "tokenizer/unicode.h"
#include "tokenizer/unigram.h"
#include "tokenizer/utf8.h"

namespace phasor::internal {
namespace {

constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581
constexpr float kUnknownPenalty = 10;

PieceTrie user_defined(const std::vector<ModelPiece>& pieces) {
  std::vector<std::pair<std::string_view, int32_t>> found;
  for (const ModelPiece& piece : pieces) {
    if (piece.type == ModelPiece::kUserDefined) found.emplace_back(piece.text, 0);
  }
  return PieceTrie(std::move(found));
}

double unknown_score_of_file(const std::vector<ModelPiece>& pieces) {
  auto least = std::numeric_limits<float>::max();
  for (const ModelPiece& piece : pieces) {
    if (piece.type == ModelPiece::kNormal) least = std::min(least, static_cast<float>(piece.score));
  }
  return least - kUnknownPenalty;
}

double unknown_score_of_json(const std::vector<ModelPiece>& pieces) {
  double least = std::numeric_limits<double>::max();
  for (const ModelPiece& piece : pieces) least = std::min(least, piece.score);
  return least - kUnknownPenalty;
}

class SentencePieceCutter : public PieceCutter {
 public:
  SentencePieceCutter(const std::vector<ModelPiece>& pieces, const SentencePieceRules& rules,
                      bool byte_fallback)
      : rules_(rules),
        charsmap_(rules.charsmap),
        user_defined_(user_defined(pieces)),
        unigram_(pieces, unknown_score_of_file(pieces),
                 {.float_sums = true, .byte_fallback = byte_fallback}) {}

  void cut(std::string_view text, bool joined, const Visit& visit) const override {
    std::vector<Unigram::Place> places;
    unigram_.cut(normalized(text, joined), places, visit);
  }

 private:
  std::string normalized(std::string_view text, bool joined) const;
  Charsmap::Rule rule(std::string_view text) const;

  const SentencePieceRules rules_;
  const Charsmap charsmap_;
  const PieceTrie user_defined_;
  const Unigram unigram_;
};

/// What `text` begins with and its replacement.
Charsmap::Rule SentencePieceCutter::rule(std::string_view text) const {
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

std::string SentencePieceCutter::normalized(std::string_view text, bool joined) const {
  const bool collapse = rules_.collapse_spaces;
  const std::string_view space = rules_.mark_spaces ? kSpace : " ";
  std::string result;
  if (collapse && !joined) {
    while (!text.empty()) {
      const auto [length, replacement] = rule(text);
      if (replacement != " ") break;
      text.remove_prefix(length);
    }
  }
  if (text.empty()) return result;
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
  }
  while (collapse && result.ends_with(space)) result.resize(result.size() - space.size());
  if (rules_.add_space && rules_.space_at_end) result += space;
  return result;
}

class MetaspaceCutter : public PieceCutter {
 public:
  MetaspaceCutter(const std::vector<ModelPiece>& pieces, const MetaspaceRules& rules)
      : rules_(rules), unigram_(pieces, unknown_score_of_json(pieces), {}) {}

  void cut(std::string_view text, bool joined, const Visit& visit) const override {
    const bool add_space = rules_.others || (rules_.first && !joined);
    std::vector<Unigram::Place> places;
    std::string marked;  // scratch space
    while (!text.empty()) {
      if (rules_.split_white_space) text.remove_prefix(spaces_at_start(text));
      const std::string_view word = text.substr(0, end_of_word(text));
      text.remove_prefix(word.size());
      if (!word.empty()) cut_word(word, add_space, places, marked, visit);
    }
  }

 private:
  size_t end_of_word(std::string_view text) const {
    if (!rules_.split_white_space) return text.size();
    std::string_view rest = text;
    for (std::string_view after = rest; !rest.empty(); rest = after) {
      if (is_white_space(take_character(after))) break;
    }
    return text.size() - rest.size();
  }

  void cut_word(std::string_view word, bool add_space, std::vector<Unigram::Place>& places,
                std::string& marked, const Visit& visit) const {
    const bool has_space = word.starts_with(' ') || word.starts_with(kSpace);
    marked = add_space && !has_space ? kSpace : "";
    for (const char c : word) c == ' ' ? marked += kSpace : marked += c;
    for (size_t begin = 0; begin < marked.size();) {
      const size_t next = rules_.split ? marked.find(kSpace, begin + 1) : marked.npos;
      const size_t end = std::min(next, marked.size());
      unigram_.cut(std::string_view(marked).substr(begin, end - begin), places, visit);
      begin = end;
    }
  }

  const MetaspaceRules rules_;
  const Unigram unigram_;
};

}  // namespace

std::unique_ptr<PieceCutter> make_unigram_cutter(const std::vector<ModelPiece>& pieces,
                                                 const SentencePieceRules& rules,
                                                 bool byte_fallback) {
  return std::make_unique<SentencePieceCutter>(pieces, rules, byte_fallback);
}

std::unique_ptr<PieceCutter> make_metaspace_cutter(const std::vector<ModelPiece>& pieces,
                                                   const MetaspaceRules& rules) {
  return std::make_unique<MetaspaceCutter>(pieces, rules);
}

}  // namespace phasor::internal
