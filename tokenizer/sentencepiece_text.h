// SentencePiece's normalization of a text.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/aligned_text.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/piece_cutter.h"
#include "tokenizer/piece_trie.h"

namespace phasor::internal {

constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  // U+2581

/// NormalizerSpec.
struct SentencePieceRules {
  std::shared_ptr<const Charsmap> charsmap = {};  // or null
  bool add_space = true;                          // before the text
  bool space_at_end = false;                      // but after it
  bool collapse_spaces = true;                    // and remove those at the ends
  bool mark_spaces = true;                        // as U+2581
};

class SentencePieceText {
 public:
  /// User-defined pieces stay as they are.
  SentencePieceText(const SentencePieceRules& rules, const std::vector<ModelPiece>& pieces);

  /// See PieceCutter::cut(). Throws ModelError for more than `most` bytes.
  AlignedText normalized(const AlignedView& text, bool joined, size_t most) const;

 private:
  Charsmap::Rule rule(std::string_view text) const;

  const SentencePieceRules rules_;
  const PieceTrie user_defined_;
};

}  // namespace phasor::internal
