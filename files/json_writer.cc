#include "files/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

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

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < count ? std::to_integer<uint32_t>(bytes[i + k]) : 0);
    }
    for (size_t k = 0; k < 4; ++k) text += k <= count ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::array<int8_t, 256> values;
  values.fill(-1);
  for (size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<int8_t>(i);
  }
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int8_t value = values[static_cast<unsigned char>(c)];
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    if ((count += 6) < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count);
  }
  return bytes;
}

}  // namespace phasor::internal
