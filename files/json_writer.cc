#include "files/json_writer.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "files/utf8.h"

namespace phasor::internal {
namespace {

/// The shortest digits that give the same number.
template <typename Number>
std::string digits_of(Number value) {
  if (!std::isfinite(value)) return "null";
  const Number size = std::abs(value);
  const bool fixed = size == 0 || (size >= Number{1e-4} && size < Number{1e15});
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 fixed ? std::chars_format::fixed : std::chars_format::scientific)
                       .ptr;
  std::string digits(buffer.data(), end);
  if (fixed && digits.find('.') == digits.npos) digits += ".0";
  return digits;
}

}  // namespace

void JsonWriter::separate() {
  if (!text_.empty() && std::string_view("{[:").find(text_.back()) == std::string_view::npos)
    text_ += ',';
}

void JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
}

void JsonWriter::raw(std::string_view json) {
  separate();
  text_ += json;
}

void JsonWriter::number(double value) { raw(digits_of(value)); }
void JsonWriter::number(float value) { raw(digits_of(value)); }

void JsonWriter::string(std::string_view value) {
  constexpr std::string_view kNamed = "\b\f\n\r\t\"\\", kNames = "bfnrt\"\\";
  separate();
  text_ += '"';
  while (!value.empty()) {
    const char32_t character = take_character(value);
    const size_t named = character < 0x80 ? kNamed.find(static_cast<char>(character)) : kNamed.npos;
    if (named != kNamed.npos) {
      (text_ += '\\') += kNames[named];
    } else if (is_obeyed(character)) {
      text_ += fmt::format("\\u{:04x}", static_cast<uint32_t>(character));
    } else {
      append_character(character, text_);
    }
  }
  text_ += '"';
}

std::string json_string(std::string_view text) {
  JsonWriter json;
  json.value(text);
  return json.take();
}

}  // namespace phasor::internal
