// The rules are XLNet's, as in Transformers.
#include "tokenizer/albert_text.h"

#include "files/utf8.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/unicode.h"

namespace phasor::internal {
namespace {

/// White space as in Python's split(): ASCII's separators (0x1c to 0x1f) count too.
bool separates(char32_t c) { return is_white_space(c) || (c >= 0x1c && c <= 0x1f); }

AlignedText collapse_spaces(const AlignedView& text) {
  bool space = false;
  Source space_source;
  return for_each_character(text, [&](char32_t c, Source source, AlignedText& collapsed) {
    if (separates(c)) {
      space = true;
      space_source = source;
      return;
    }
    if (space && collapsed.size() > 0) collapsed.append(" ", space_source);
    space = false;
    collapsed.append(c, source);
  });
}

}  // namespace

AlignedText prepare_albert_text(const AlignedView& text, const AlbertTextOptions& options) {
  AlignedText prepared = options.collapse_spaces ? collapse_spaces(text) : AlignedText(text);
  prepared = replace_all(prepared, "``", "\"");
  prepared = replace_all(prepared, "''", "\"");
  if (options.strip_accents) prepared = to_normal_form(prepared, NormalForm::kNfkd);
  return for_each_character(prepared, [&](char32_t c, Source source, AlignedText& result) {
    if (options.strip_accents && is_combining(c)) return;
    result.append(options.lower_case ? to_lower(c) : c, source);
  });
}

bool is_number_with_comma(std::string_view piece) {
  if (!piece.ends_with(',')) return false;
  char32_t before = 0;
  for (piece.remove_suffix(1); !piece.empty();) before = take_character(piece);
  return is_decimal_digit(before);
}

}  // namespace phasor::internal
