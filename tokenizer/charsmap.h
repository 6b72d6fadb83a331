// A table of normalization rules, SentencePiece's precompiled_charsmap.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/aligned_text.h"

namespace phasor::internal {

/// A trie as darts-clone writes it: the child of `node` by a byte is the unit at its base XOR the
/// byte, if that unit's label is the byte; a node that ends a rule has the rule's value at its
/// base.
class DoubleArray {
 public:
  DoubleArray() = default;
  explicit DoubleArray(std::string_view bytes);

  size_t size() const { return units_.size(); }
  size_t base(size_t node) const {
    const uint32_t unit = units_[node];
    return node ^ (size_t{unit >> 10} << ((unit & 0x200) >> 6));
  }
  uint32_t label(size_t node) const { return units_[node] & 0x800000ff; }  // a value's: above 255
  bool ends_rule(size_t node) const { return (units_[node] & 0x100) != 0; }
  size_t value(size_t node) const { return units_[base(node)] & 0x7fffffff; }

 private:
  std::vector<uint32_t> units_;
};

class Charsmap {
 public:
  /// No rules.
  Charsmap() = default;
  /// `bytes` are empty, or charsmap_fault() finds none in them.
  explicit Charsmap(std::string_view bytes);

  struct Rule {
    size_t length = 0;  // the bytes that it replaces; 0: none applies
    std::string_view replacement = {};
  };
  /// The rules for what `text` begins with.
  Rule longest(std::string_view text) const { return find(text, true); }
  Rule shortest(std::string_view text) const { return find(text, false); }

  /// Applies the rules as Hugging Face's Precompiled does: to clusters of characters of up to five
  /// bytes and, where none applies, to their characters; the shortest rule counts.
  /// `most`: see NormalizerStep.
  AlignedText normalize_clusters(const AlignedView& text, size_t most) const;

 private:
  Rule find(std::string_view text, bool longest) const;

  DoubleArray trie_;
  std::string replacements_;  // each ends in NUL
};

}  // namespace phasor::internal
