// Checks a SentencePiece model before libsentencepiece reads it.
#pragma once

#include <cstdint>
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
  std::string bytes = {};  // for the library
};

/// Reads `model`, the bytes of `file`. Throws ModelError if it is not a SentencePiece model, or
/// has something that the library does not check: more matches at one place than its arrays hold,
/// pieces that overflow its stack. `bytes` have no self_test_data: texts that the library would
/// tokenize during loading, for any length of time, printing differences; and no rules for texts,
/// which it gets normalized.
CheckedModel checked_sentencepiece_model(std::string_view model, const std::string& file);

/// The fault of a table of normalization rules, NormalizerSpec's precompiled_charsmap; empty if
/// there is none. See tokenizer/charsmap_check.cc.
std::string charsmap_fault(std::string_view charsmap);

}  // namespace phasor::internal
