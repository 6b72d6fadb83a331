// UTF-8: makes texts valid as SentencePiece does, and reads their characters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phasor::internal {

struct ValidText {
  std::string text;
  int64_t invalid_bytes = 0;
};

/// Replaces every byte that is not part of a well-formed character by U+FFFD (overlong forms,
/// surrogates and numbers past U+10FFFF are ill-formed), and counts those bytes.
ValidText to_valid_utf8(std::string_view bytes);

/// Removes the first character of `text`, which must not be empty, and returns it; for a byte that
/// is not part of one, U+FFFD.
char32_t take_character(std::string_view& text);

/// Places in a text, counted in characters as take_character() takes them.
class CharacterPlaces {
 public:
  explicit CharacterPlaces(std::string_view text);
  /// The number of the character at this byte; at the text's end, how many there are.
  int64_t operator()(int64_t byte) const;

 private:
  std::vector<int64_t> starts_;  // bytes, and the text's end
};

/// Whether a byte of UTF-8 belongs to the character before it.
inline bool is_inside_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

/// The bytes of the first character of `text`, which is valid UTF-8 and not empty.
inline size_t character_size(std::string_view text) {
  size_t size = 1;
  while (size < text.size() && is_inside_character(text[size])) ++size;
  return size;
}
/// The last character of such a text.
inline std::string_view last_character(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && is_inside_character(text[begin])) --begin;
  return text.substr(begin);
}

/// Control characters, and those that end lines or turn the direction of writing.
inline bool is_obeyed(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/// Valid UTF-8, with blanks in place of such characters.
std::string printable(std::string_view text);

void append_character(char32_t character, std::string& text);

}  // namespace phasor::internal
