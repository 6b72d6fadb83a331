// Byte-level BPE: the tokenizer of GPT-2, RoBERTa, BART and ModernBERT, which merges bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "phasor/tokenizer.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {

/// Everything that distinguishes byte-level BPE tokenizers.
struct ByteLevelBpeSpec {
  std::vector<std::pair<std::string, int32_t>> pieces = {};
  std::string merges_file = {};  // for messages
  /// In their order. Of equal ones the last counts.
  std::vector<std::pair<std::string, std::string>> merges = {};
  bool ignore_merges = false;     // a word that is a piece is not merged
  bool add_prefix_space = false;  // before a part of a text that begins with none
  bool split_words = true;        // as GPT-2's, see tokenizer/gpt2_words.h
  std::string unk = {};           // for bytes without a piece; empty: they are left out
  CommonSpec common = {};
};

/// How byte-level BPE writes a byte: U+0021 to U+007E, U+00A1 to U+00AC and U+00AE to U+00FF stand
/// for themselves, the other 68 are U+0100 and following.
char32_t byte_character(unsigned char byte);

/// Throws ModelError if there is no merge, a merge's parts or result are no pieces, or a special
/// token is unknown.
std::shared_ptr<const Tokenizer> make_byte_level_bpe(const ByteLevelBpeSpec& spec);

}  // namespace phasor::internal
