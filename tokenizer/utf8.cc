// A UTF-8 decoder that only measures: how long the well-formed character at the front is.
#include "tokenizer/utf8.h"

namespace phasor {
namespace {

/// The length of the well-formed character that `bytes` begins with, or 0 (Unicode 15, table 3-7).
size_t character_length(std::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || bytes.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;  // overlong
  if (lead == 0xed && byte(1) > 0x9f) return 0;  // surrogates
  if (lead == 0xf0 && byte(1) < 0x90) return 0;  // overlong
  if (lead == 0xf4 && byte(1) > 0x8f) return 0;  // past U+10FFFF
  return length;
}

}  // namespace

ValidText to_valid_utf8(std::string_view bytes) {
  ValidText result;
  result.text.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t length = character_length(bytes);
    if (length > 0) {
      result.text += bytes.substr(0, length);
    } else {
      result.text += "\xef\xbf\xbd";
      ++result.invalid_bytes;
    }
    bytes.remove_prefix(length > 0 ? length : 1);
  }
  return result;
}

}  // namespace phasor
