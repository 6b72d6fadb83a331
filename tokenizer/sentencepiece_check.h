// Checks a SentencePiece model before libsentencepiece reads it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/unigram.h"

namespace phasor::internal {

/// How much longer a text can become by a table of normalization rules.
struct CharsmapGrowth {
  /// [256·256]: the bytes of the longest replacement of what begins with these two bytes.
  std::vector<uint8_t> most = std::vector<uint8_t>(size_t{256} * 256);
  bool maps_space = false;  // a rule has ' ', which may become something else
};

/// Views of the file's bytes are valid while these are.
struct CheckedModel {
  enum Type : int32_t { kUnigram = 1, kBpe, kWord, kCharacter };

  Type type = kUnigram;
  std::vector<ModelPiece> pieces = {};
  SentencePieceRules rules = {};
  bool byte_fallback = false;
  std::string bytes = {};  // for the library
  CharsmapGrowth growth = {};

  /// ' ' becomes "▁", which is a piece by itself: not so in a model of whole words.
  bool spaces_are_pieces() const { return rules.mark_spaces && type != kWord; }
};

/// `model`, the bytes of `file`, without self_test_data: texts that libsentencepiece would tokenize
/// during loading, for any length of time, printing differences. Throws ModelError if `model` is
/// not a SentencePiece model, or has something that the library does not check: a table of
/// normalization rules that points outside itself, more matches at one place than its arrays hold,
/// pieces that overflow its stack.
CheckedModel checked_sentencepiece_model(std::string_view model, const std::string& file);

/// The fault of a table of normalization rules, NormalizerSpec's precompiled_charsmap; empty if
/// there is none: then `growth` is the table's. See tokenizer/charsmap_check.cc.
std::string charsmap_fault(std::string_view charsmap, CharsmapGrowth& growth);

}  // namespace phasor::internal
