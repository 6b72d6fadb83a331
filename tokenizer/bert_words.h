// BERT's words of a text, before WordPiece splits them.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "tokenizer/aligned_text.h"

namespace phasor::internal {

struct BertWordOptions {
  bool lower_case = true;
  bool strip_accents = true;  // NFD without nonspacing marks
  bool split_han = true;      // every Han ideograph is a word
};

/// `text`, valid UTF-8, as BertNormalizer leaves it.
AlignedText bert_normalized(const AlignedView& text, const BertWordOptions& options);

/// Calls `visit` with each word of `text`, which is valid UTF-8, and its number of characters.
/// White space separates words, each punctuation mark is a word, and control characters, NUL and
/// U+FFFD are dropped. The rules are BertNormalizer's and BertPreTokenizer's in Hugging Face
/// tokenizers. A word is valid during the call.
void for_each_bert_word(
    const AlignedView& text, const BertWordOptions& options,
    const std::function<void(const AlignedView& word, int64_t num_characters)>& visit);

}  // namespace phasor::internal
