// Properties of characters that tokenizers need, in Unicode's terms.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tokenizer/aligned_text.h"

namespace phasor::internal {

bool is_white_space(char32_t character);      // tab, line feed, no-break space, …
bool is_control(char32_t character);          // Cc, Cf, Co
bool is_punctuation(char32_t character);      // P
bool is_nonspacing_mark(char32_t character);  // Mn: most accents
bool is_combining(char32_t character);        // canonical combining class above 0
bool is_mark(char32_t character);             // M
bool is_decimal_digit(char32_t character);    // Nd
/// A bit for each of Unicode's general categories: the character's, and all of those that a name
/// like "Lu" or "L" stands for; 0: there is no such name.
uint32_t category_bit(char32_t character);
uint32_t categories_named(std::string_view name);
/// Letters, marks, digits, connecting punctuation and joiners: \w of regular expressions.
bool is_word_character(char32_t character);
/// Han ideographs, including compatibility ideographs; not kana or hangul.
bool is_han(char32_t character);

/// The lower-case form of this character; "i" for U+0130, "σ" for "Σ" at any place.
char32_t to_lower(char32_t character);

/// The bytes of the first grapheme cluster of `text`, valid UTF-8 and not empty: a character with
/// its marks, "\r\n", a syllable of Hangul's letters, …
size_t cluster_size(std::string_view text);

/// The full canonical decomposition (NFD) of a character, written to `buffer`.
using PartsBuffer = std::array<int32_t, 8>;
std::span<const int32_t> canonical_parts(char32_t character, PartsBuffer& buffer);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
/// `text`, valid UTF-8, in one of Unicode's normal forms. What is composed comes from the first of
/// the characters that it takes; marks that change places take the characters of `text` in order.
/// `most`: see NormalizerStep.
AlignedText to_normal_form(const AlignedView& text, NormalForm form,
                           size_t most = std::string::npos);

}  // namespace phasor::internal
