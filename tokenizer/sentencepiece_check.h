// SentencePiece's models: what a file says, and what cuts texts with libsentencepiece.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/piece_cutter.h"
#include "tokenizer/sentencepiece_text.h"

namespace phasor::internal {

/// Views of the file's bytes are valid while these are.
struct CheckedModel {
  enum Type : int32_t { kUnigram = 1, kBpe, kWord, kCharacter };

  Type type = kUnigram;
  std::vector<ModelPiece> pieces = {};
  SentencePieceRules rules = {};
  bool byte_fallback = false;
};

/// Reads `model`, the bytes of `file`. Throws ModelError if it is not a SentencePiece model, or
/// has something that the library does not check: more matches at one place than its arrays hold,
/// pieces that overflow its stack.
CheckedModel checked_sentencepiece_model(std::string_view model, const std::string& file);

/// The cutter of a model of another type than kUnigram, which is the library's. Throws ModelError
/// if the library does not read it.
std::unique_ptr<PieceCutter> make_library_cutter(const CheckedModel& model,
                                                 const std::string& file);

}  // namespace phasor::internal
