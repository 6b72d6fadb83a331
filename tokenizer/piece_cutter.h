// The pieces of a SentencePiece or Unigram model, and what cuts texts into them.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "tokenizer/aligned_text.h"

namespace phasor::internal {

struct ModelPiece {
  /// Those of sentencepiece_model.proto.
  enum Type : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

  std::string_view text;
  double score = 0;
  Type type = kNormal;

  bool is_in_text() const { return type == kNormal || type == kUserDefined || type == kUnused; }
};

class PieceCutter {
 public:
  /// `number` is the piece's place in the model.
  using Visit = std::function<void(const AlignedView& piece, int32_t number)>;

  virtual ~PieceCutter() = default;

  /// Visits the pieces of `text`, which is valid UTF-8. Unknown characters in a row are one piece.
  /// `joined`: the text follows something in the same word, so no space is put before it. Throws
  /// ModelError where the model's own rules make more than `most` bytes of it.
  virtual void cut(const AlignedView& text, bool joined, size_t most, const Visit& visit) const = 0;
};

}  // namespace phasor::internal
