// The rules are XLNet's, as in Transformers.
#include "tokenizer/albert_text.h"

#include "files/utf8.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/unicode.h"

namespace phasor::internal {
namespace {

/// White space as in Python's split(): ASCII's separators (0x1c to 0x1f) count too.
bool separates(char32_t c) { return is_white_space(c) || (c >= 0x1c && c <= 0x1f); }

std::string collapse_spaces(std::string_view text) {
  std::string collapsed;
  bool space = false;
  while (!text.empty()) {
    const char32_t c = take_character(text);
    if (separates(c)) {
      space = true;
      continue;
    }
    if (space && !collapsed.empty()) collapsed += ' ';
    space = false;
    append_character(c, collapsed);
  }
  return collapsed;
}

}  // namespace

std::string prepare_albert_text(std::string_view text, const AlbertTextOptions& options) {
  std::string prepared = options.collapse_spaces ? collapse_spaces(text) : std::string(text);
  prepared = replace_all(prepared, "``", "\"");
  prepared = replace_all(prepared, "''", "\"");
  if (options.strip_accents) prepared = to_normal_form(prepared, NormalForm::kNfkd);
  std::string result;
  for (std::string_view rest = prepared; !rest.empty();) {
    const char32_t c = take_character(rest);
    if (options.strip_accents && is_combining(c)) continue;
    append_character(options.lower_case ? to_lower(c) : c, result);
  }
  return result;
}

bool is_number_with_comma(std::string_view piece) {
  if (!piece.ends_with(',')) return false;
  char32_t before = 0;
  for (piece.remove_suffix(1); !piece.empty();) before = take_character(piece);
  return is_decimal_digit(before);
}

}  // namespace phasor::internal
