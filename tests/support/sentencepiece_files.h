// SentencePiece models written byte by byte, good ones and bad ones.
#pragma once

#include "tests/support/test.h"

namespace phasor {

/// The types of sentencepiece_model.proto.
enum class PieceType : uint64_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct TestPiece {
  std::string text;
  PieceType type = PieceType::kNormal;
  float score = -1;
};

/// A field of a protocol buffer.
std::string varint_field(uint64_t number, uint64_t value);
std::string bytes_field(uint64_t number, std::string_view bytes);

/// A model of these pieces, after "<unk>" and "▁"; its type is unigram.
std::string sentencepiece_bytes(const std::vector<TestPiece>& pieces);

/// The same with a table of normalization rules.
std::string sentencepiece_bytes(const std::vector<TestPiece>& pieces, std::string_view charsmap);

/// A table of normalization rules, whose parts can be changed before it is written.
struct TestCharsmap {
  std::vector<uint32_t> units;  // darts-clone's double array
  std::string table;            // the replacements

  std::string bytes() const;
};
TestCharsmap make_charsmap(const std::vector<std::pair<std::string, std::string>>& rules);

}  // namespace phasor
