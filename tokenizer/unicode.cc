// Implemented with utf8proc's tables.
#include "tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "files/utf8.h"

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

uint32_t category_bit(char32_t character) { return uint32_t{1} << category(character); }

uint32_t categories_named(std::string_view name) {
  // In utf8proc's order.
  constexpr std::string_view kNames =
      "CnLuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCo";
  uint32_t bits = 0;
  for (size_t i = 0; i < kNames.size() / 2 && !name.empty() && name.size() <= 2; ++i) {
    if (kNames.substr(2 * i, 2).starts_with(name)) bits |= uint32_t{1} << i;
  }
  return bits;
}

bool is_word_character(char32_t character) {
  const utf8proc_category_t c = category(character);
  if (c == UTF8PROC_CATEGORY_SO) {  // letters in circles and squares
    return (character >= 0x24b6 && character <= 0x24e9) ||
           (character >= 0x1f130 && character <= 0x1f149) ||
           (character >= 0x1f150 && character <= 0x1f169) ||
           (character >= 0x1f170 && character <= 0x1f189);
  }
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

size_t cluster_size(std::string_view text) {
  std::string_view rest = text;
  utf8proc_int32_t state = 0;
  for (char32_t before = take_character(rest); !rest.empty();) {
    std::string_view after = rest;
    const char32_t next = take_character(after);
    const bool ascii = before < 0x80 && next < 0x80 && before != U'\r';
    if (ascii || utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before),
                                                  static_cast<utf8proc_int32_t>(next), &state)) {
      break;
    }
    before = next;
    rest = after;
  }
  return text.size() - rest.size();
}

std::span<const int32_t> canonical_parts(char32_t character, PartsBuffer& buffer) {
  int boundary_class = 0;
  const utf8proc_ssize_t size = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(character), buffer.data(),
      static_cast<utf8proc_ssize_t>(buffer.size()), UTF8PROC_DECOMPOSE, &boundary_class);
  return std::span(buffer).first(static_cast<size_t>(
      std::clamp<utf8proc_ssize_t>(size, 0, static_cast<utf8proc_ssize_t>(buffer.size()))));
}

namespace {

/// What two characters compose to; 0: nothing.
utf8proc_int32_t composed(utf8proc_int32_t first, utf8proc_int32_t second) {
  constexpr utf8proc_int32_t kFirstThatComposes = 0x300;
  if (second < kFirstThatComposes) return 0;
  std::array<utf8proc_int32_t, 2> pair = {first, second};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  return utf8proc_normalize_utf32(pair.data(), 2, options) == 1 ? pair[0] : 0;
}

}  // namespace

// utf8proc_map() is not used: it orders marks in time quadratic in their number, and does not say
// what came from where.
AlignedText to_normal_form(const AlignedView& text, NormalForm form, size_t most) {
  const bool compose = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                      (compatible ? UTF8PROC_COMPAT : 0));
  struct Part {
    utf8proc_int32_t character;
    int32_t mark_class;  // canonical combining class
    int64_t taken;       // characters of `text`: one, none for what follows in a decomposition
  };
  std::vector<Part> parts;
  size_t starter = 0;  // where the run of combining characters at the end begins
  const auto order_marks = [&] {
    const std::span<Part> marks = std::span(parts).subspan(std::min(starter, parts.size()));
    if (!std::ranges::is_sorted(marks, {}, &Part::mark_class))
      std::ranges::stable_sort(marks, {}, &Part::mark_class);
  };
  std::string_view rest = text.text;
  while (!rest.empty() && parts.size() <= most) {
    std::array<utf8proc_int32_t, 32> buffer;  // the longest has 18
    int boundary_class = 0;
    const auto size = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(take_character(rest)), buffer.data(),
        static_cast<utf8proc_ssize_t>(buffer.size()), options, &boundary_class);
    for (utf8proc_ssize_t i = 0; i < size; ++i) {
      const int32_t mark_class = utf8proc_get_property(buffer[i])->combining_class;
      if (mark_class == 0) {
        order_marks();
        starter = parts.size() + 1;
      }
      parts.push_back({buffer[i], mark_class, i == 0 ? 1 : 0});
    }
  }
  order_marks();
  constexpr size_t kNone = std::string::npos;
  size_t kept = 0, last_starter = kNone;
  for (const Part& part : parts) {
    if (compose && rest.empty() && last_starter != kNone) {
      const bool adjacent = last_starter == kept - 1;
      const bool blocked = !adjacent && parts[kept - 1].mark_class >= part.mark_class;
      const auto whole = blocked ? 0 : composed(parts[last_starter].character, part.character);
      if (whole != 0) {
        parts[last_starter].character = whole;
        parts[last_starter].taken += part.taken;
        continue;
      }
    }
    if (part.mark_class == 0) last_starter = kept;
    parts[kept++] = part;
  }
  AlignedText result = AlignedText::of(text);
  result.reserve(text.text.size());
  rest = text.text;
  for (const Part& part : std::span(parts).first(kept)) {
    const Source source =
        part.taken > 0 && !rest.empty() ? text.source_of(rest) : text.source_before(rest);
    for (int64_t i = 0; i < part.taken && !rest.empty() && text.sources != nullptr; ++i)
      rest.remove_prefix(character_size(rest));
    result.append(static_cast<char32_t>(part.character), source);
  }
  return result;
}

}  // namespace phasor::internal
