#include "tokenizer/normalizer.h"

#include <algorithm>
#include <utility>

#include "files/refuse.h"
#include "files/utf8.h"
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

size_t most_normalized(size_t size) {
  return std::min(16 * (size + 1), 4 * size + (size_t{1} << 20));
}

Normalizer in_order(std::vector<NormalizerStep> steps, std::string file) {
  if (steps.empty()) return {};
  return [steps = std::move(steps), file = std::move(file)](const AlignedView& text) {
    const size_t most = most_normalized(text.text.size());
    AlignedText result(text);
    for (const NormalizerStep& step : steps) {
      result = step(result, most);
      const auto spaces = static_cast<size_t>(std::ranges::count(result.text(), ' '));
      if (result.size() + 2 * spaces <= most) continue;
      refuse<ModelError>("{}: the normalizer makes more than {} bytes of a text of {}", file, most,
                         text.text.size());
    }
    return result;
  };
}

AlignedText lower_case(const AlignedView& text) {
  return for_each_character(text, [](char32_t c, Source source, AlignedText& result) {
    result.append(to_lower(c), source);
    if (c == U'\u0130') result.append(U'\u0307', source);  // the only one that becomes two
  });
}

AlignedText without_marks(const AlignedView& text) {
  return for_each_character(text, [](char32_t c, Source source, AlignedText& result) {
    if (!is_mark(c)) result.append(c, source);
  });
}

AlignedText replace_all(const AlignedView& text, std::string_view from, std::string_view to,
                        size_t most) {
  AlignedText result = AlignedText::of(text);
  std::string_view rest = text.text;
  for (size_t at = rest.find(from); at != rest.npos && result.size() <= most;
       at = rest.find(from)) {
    result.append(text.part(rest.substr(0, at)));
    rest.remove_prefix(at + from.size());
    result.append(to, text.source_before(rest));
  }
  result.append(text.part(rest));
  return result;
}

AlignedText replace_runs_of_spaces(const AlignedView& text, std::string_view to, size_t most) {
  AlignedText result = AlignedText::of(text);
  for (std::string_view rest = text.text; !rest.empty() && result.size() <= most;) {
    const size_t word = std::min(rest.find(' '), rest.size());
    result.append(text.part(rest.substr(0, word)));
    rest.remove_prefix(word);
    const size_t run = std::min(rest.find_first_not_of(' '), rest.size());
    const AlignedView spaces = text.part(rest.substr(0, run));
    rest.remove_prefix(run);
    run >= 2 ? result.append(to, text.source_before(rest)) : result.append(spaces);
  }
  return result;
}

AlignedText replace_runs_and_breaks(const AlignedView& text, std::string_view to, size_t most) {
  AlignedText result = AlignedText::of(text);
  for (std::string_view rest = text.text; !rest.empty() && result.size() <= most;) {
    const std::string_view run = rest.substr(0, spaces_at_start(rest));
    const size_t character = character_size(rest);
    const bool counts = run.size() > character || run == "\n" || run == "\r" || run == "\t";
    const AlignedView kept = text.part(rest.substr(0, run.empty() ? character : run.size()));
    rest.remove_prefix(kept.text.size());
    counts ? result.append(to, text.source_before(rest)) : result.append(kept);
  }
  return result;
}

AlignedText prepend(const AlignedView& text, std::string_view before) {
  AlignedText result = AlignedText::of(text);
  result.append(before, text.text.empty() ? Source{} : text.source_of(text.text));
  result.append(text);
  return result;
}

// The rules are XLNet's, as in Transformers.
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

size_t spaces_at_end(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view last = last_character(rest);
    const size_t size = last.size();
    if (!is_white_space(take_character(last))) break;
    rest.remove_suffix(size);
  }
  return text.size() - rest.size();
}

size_t spaces_at_start(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view after = rest;
    if (!is_white_space(take_character(after))) break;
    rest = after;
  }
  return text.size() - rest.size();
}

std::string_view without_outer_spaces(std::string_view text, bool left, bool right) {
  if (left) text.remove_prefix(spaces_at_start(text));
  if (right) text.remove_suffix(spaces_at_end(text));
  return text;
}

}  // namespace phasor::internal
