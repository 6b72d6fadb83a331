// BPE: of bytes, as in GPT-2, RoBERTa, ModernBERT and Qwen, or of characters with bytes for those
// that are no pieces, as in Gemma.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "phasor/tokenizer.h"
#include "tokenizer/metaspace.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/split_pattern.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {

/// Patterns, each of which splits the pieces of the one before.
using Splits = std::vector<std::shared_ptr<const SplitPattern>>;

/// Everything that distinguishes BPE tokenizers.
struct ByteLevelBpeSpec {
  PieceIds pieces = {};
  std::string merges_file = {};  // for messages
  /// In their order. Of equal ones the last counts.
  std::vector<std::pair<std::string, std::string>> merges = {};
  bool ignore_merges = false;     // a word that is a piece is not merged
  bool add_prefix_space = false;  // before a part of a text that begins with none
  Splits splits = {};
  std::optional<MetaspaceRules> metaspace = {};  // in place of `splits`
  std::string unk = {};                          // for what has no piece; empty: it is left out
  /// Characters are merged, not bytes. One that is no piece is bytes, "<0x0A>", if all of them are
  /// pieces; `fuses_unk`: several unknown ones make one token.
  bool of_characters = false;
  bool byte_fallback = false, fuses_unk = false;
  CommonSpec common = {};
};

/// How byte-level BPE writes a byte: U+0021 to U+007E, U+00A1 to U+00AC and U+00AE to U+00FF stand
/// for themselves, the other 68 are U+0100 and following.
char32_t byte_character(unsigned char byte);

/// Throws ModelError if there is no merge, a merge's parts or result are no pieces, or a special
/// token is unknown.
std::shared_ptr<const Tokenizer> make_byte_level_bpe(const ByteLevelBpeSpec& spec);

}  // namespace phasor::internal
