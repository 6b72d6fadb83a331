// utf8proc accepts only well-formed characters (Unicode 15, table 3-7).
#include "files/utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace phasor::internal {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

/// The character at the front of `text` and its length; a negative length if it is ill-formed.
struct Decoded {
  int32_t character = 0;
  utf8proc_ssize_t length = 0;
};

Decoded decode(std::string_view text) {
  Decoded decoded;
  // No character has more than four bytes; the length is an int inside utf8proc before 2.9.
  decoded.length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                    static_cast<utf8proc_ssize_t>(std::min<size_t>(4, text.size())),
                                    &decoded.character);
  return decoded;
}

}  // namespace

ValidText to_valid_utf8(std::string_view bytes) {
  ValidText result;
  result.text.reserve(bytes.size());
  size_t begin = 0;  // start of the well-formed bytes not yet copied
  for (size_t at = 0; at < bytes.size();) {
    if (static_cast<unsigned char>(bytes[at]) < 0x80) {
      ++at;
      continue;
    }
    const utf8proc_ssize_t length = decode(bytes.substr(at)).length;
    if (length > 0) {
      at += static_cast<size_t>(length);
      continue;
    }
    result.text.append(bytes, begin, at - begin).append(kReplacement);
    ++result.invalid_bytes;
    begin = ++at;
  }
  result.text.append(bytes.substr(begin));
  return result;
}

char32_t take_character(std::string_view& text) {
  const Decoded decoded = decode(text);
  const bool valid = decoded.length > 0;
  text.remove_prefix(valid ? static_cast<size_t>(decoded.length) : 1);
  return valid ? static_cast<char32_t>(decoded.character) : U'\ufffd';
}

CharacterPlaces::CharacterPlaces(std::string_view text) {
  for (std::string_view left = text; !left.empty(); take_character(left))
    starts_.push_back(std::ssize(text) - std::ssize(left));
  starts_.push_back(std::ssize(text));
}

int64_t CharacterPlaces::operator()(int64_t byte) const {
  return std::ranges::upper_bound(starts_, byte) - starts_.begin() - 1;
}

void append_character(char32_t character, std::string& text) {
  std::array<utf8proc_uint8_t, 4> bytes;
  const utf8proc_ssize_t length =
      utf8proc_encode_char(static_cast<utf8proc_int32_t>(character), bytes.data());
  text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(length));
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t character = take_character(text);
    if (character == U'\uFFFD') {
      out += kReplacement;
    } else if (is_obeyed(character)) {
      out += ' ';
    } else {
      out += before.substr(0, before.size() - text.size());
    }
  }
  return out;
}

}  // namespace phasor::internal
