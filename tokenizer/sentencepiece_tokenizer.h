// A SentencePiece model with a model family's ids and special tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "phasor/tokenizer.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/piece_cutter.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {

/// Everything that distinguishes SentencePiece tokenizers, as plain data.
///
/// Ids: with `vocabulary` a piece has the id given there, or that of `unk`; without it piece number
/// n has the id n + offset. `fixed` lists exceptions, and `appended` pieces take the ids after the
/// last one.
struct SentencePieceSpec {
  std::string kind = {};   // for people: "XLM-R"
  std::string model = {};  // the model itself: the file's bytes

  std::optional<PieceIds> vocabulary = {};
  int32_t offset = 0;
  PieceIds fixed = {};
  std::vector<std::string> appended = {};

  std::string unk = {};  // empty: the SentencePiece model's own
  std::string pad = {};  // empty: none
  /// A text may begin with a code such as ">>fra<<", which is one token (Marian).
  bool leading_language_code = false;
  /// Texts are prepared like ALBERT's; see prepare_albert_text().
  std::optional<AlbertTextOptions> albert = {};
  /// The text after a special token starts a new word even without a space, as in Transformers;
  /// otherwise "[MASK]." ends with the piece ".", as in running text.
  bool new_word_after_special = false;
  CommonSpec common = {};
};

/// Throws ModelError if spec.model is not a SentencePiece model or a special token is unknown.
std::shared_ptr<const Tokenizer> make_sentencepiece_tokenizer(const SentencePieceSpec& spec);

/// The same with these pieces, of which one is of the type kUnknown, in place of spec.model.
std::shared_ptr<const Tokenizer> make_sentencepiece_tokenizer(
    const SentencePieceSpec& spec, const std::vector<ModelPiece>& pieces,
    std::unique_ptr<const PieceCutter> cutter);

}  // namespace phasor::internal
