// Implemented with utf8proc's tables.
#include "tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

namespace phasor::internal {
namespace {

utf8proc_category_t category(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

}  // namespace

bool is_white_space(char32_t character) {
  if (character >= U'\t' && character <= U'\r') return true;
  if (character == U'\u0085') return true;
  const utf8proc_category_t c = category(character);
  return c == UTF8PROC_CATEGORY_ZS || c == UTF8PROC_CATEGORY_ZL || c == UTF8PROC_CATEGORY_ZP;
}

bool is_control(char32_t character) {
  const utf8proc_category_t c = category(character);
  return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_CO;
}

bool is_punctuation(char32_t character) {
  const utf8proc_category_t c = category(character);
  return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO;
}

bool is_nonspacing_mark(char32_t character) { return category(character) == UTF8PROC_CATEGORY_MN; }

bool is_combining(char32_t character) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(character))->combining_class > 0;
}

bool is_mark(char32_t character) {
  const utf8proc_category_t c = category(character);
  return c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME;
}

bool is_decimal_digit(char32_t character) { return category(character) == UTF8PROC_CATEGORY_ND; }

bool is_letter(char32_t character) {
  const utf8proc_category_t c = category(character);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool is_number(char32_t character) {
  const utf8proc_category_t c = category(character);
  return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}

bool is_word_character(char32_t character) {
  const utf8proc_category_t c = category(character);
  const bool joiner = character == U'\u200c' || character == U'\u200d';
  return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL) || c == UTF8PROC_CATEGORY_PC ||
         joiner;
}

bool is_han(char32_t character) {
  struct Block {
    char32_t first, last;
  };
  // utf8proc has no scripts. These are Unicode's blocks of CJK ideographs up to extension E.
  static constexpr Block kBlocks[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                      {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f},
                                      {0x2b820, 0x2ceaf}, {0x2f800, 0x2fa1f}};
  return std::any_of(std::begin(kBlocks), std::end(kBlocks), [=](const Block& block) {
    return character >= block.first && character <= block.last;
  });
}

char32_t to_lower(char32_t character) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character)));
}

std::span<const int32_t> canonical_parts(char32_t character, PartsBuffer& buffer) {
  int boundary_class = 0;
  const utf8proc_ssize_t size = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(character), buffer.data(),
      static_cast<utf8proc_ssize_t>(buffer.size()), UTF8PROC_DECOMPOSE, &boundary_class);
  return std::span(buffer).first(static_cast<size_t>(
      std::clamp<utf8proc_ssize_t>(size, 0, static_cast<utf8proc_ssize_t>(buffer.size()))));
}

std::string to_normal_form(std::string_view text, NormalForm form) {
  const bool composed = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const int options = UTF8PROC_STABLE | (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                      (compatible ? UTF8PROC_COMPAT : 0);
  utf8proc_uint8_t* bytes = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &bytes,
                                             static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(bytes, &std::free);
  if (size < 0) throw std::bad_alloc();  // the text is valid, so this is the only possible failure
  return std::string(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

}  // namespace phasor::internal
