// The steps of SentencePiece and of Hugging Face's tokenizers before a Unigram model cuts a text.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "files/utf8.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/unicode.h"
#include "tokenizer/unigram.h"

namespace phasor::internal {
namespace {

constexpr float kUnknownPenalty = 10;

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
      : text_(rules, pieces),
        unigram_(pieces, unknown_score_of_file(pieces),
                 {.float_sums = true, .byte_fallback = byte_fallback}) {}

  void cut(std::string_view text, bool joined, size_t most, const Visit& visit) const override {
    std::vector<Unigram::Place> places;
    unigram_.cut(text_.normalized(text, joined, most), places, visit);
  }

 private:
  const SentencePieceText text_;
  const Unigram unigram_;
};

class MetaspaceCutter : public PieceCutter {
 public:
  MetaspaceCutter(const std::vector<ModelPiece>& pieces, const MetaspaceRules& rules)
      : rules_(rules), unigram_(pieces, unknown_score_of_json(pieces), {}) {}

  void cut(std::string_view text, bool joined, size_t, const Visit& visit) const override {
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
    const bool has_space = word.starts_with(' ') || word.starts_with(kSpaceMark);
    marked = add_space && !has_space ? kSpaceMark : "";
    for (const char c : word) c == ' ' ? marked += kSpaceMark : marked += c;
    for (size_t begin = 0; begin < marked.size();) {
      const size_t next = rules_.split ? marked.find(kSpaceMark, begin + 1) : marked.npos;
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
