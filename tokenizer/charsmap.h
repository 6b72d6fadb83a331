// A table of normalization rules, SentencePiece's precompiled_charsmap.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "tokenizer/aligned_text.h"
#include "tokenizer/piece_trie.h"

namespace phasor::internal {

class Charsmap {
 public:
  /// What is wrong with a table.
  struct Fault : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  /// Throws Fault. Empty `bytes` have no rules.
  explicit Charsmap(std::string_view bytes);

  struct Rule {
    size_t length = 0;  // the bytes that it replaces; 0: none applies
    std::string_view replacement = {};
  };
  /// The longest of the rules for what `text` begins with.
  Rule longest(std::string_view text) const;

  /// Applies the rules as Hugging Face's Precompiled does: to clusters of characters of up to five
  /// bytes and, where none applies, to their characters; the shortest rule counts.
  /// `most`: see NormalizerStep.
  AlignedText normalize_clusters(const AlignedView& text, size_t most) const;

 private:
  std::string replacements_;  // each ends in NUL
  PieceTrie rules_;           // the numbers are places in `replacements_`
};

}  // namespace phasor::internal
