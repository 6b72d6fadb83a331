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

  void cut(const AlignedView& text, bool joined, size_t most, const Visit& visit) const override {
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

  void cut(const AlignedView& text, bool joined, size_t, const Visit& visit) const override {
    std::vector<Unigram::Place> places;
    rules_.for_each_word(text, joined,
                         [&](const AlignedView& word) { unigram_.cut(word, places, visit); });
  }

 private:
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
