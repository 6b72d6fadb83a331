// Normalizers of Hugging Face's tokenizers and ALBERT's, which change a text before it is split.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "files/utf8.h"
#include "tokenizer/aligned_text.h"

namespace phasor::internal {

/// Takes and returns valid UTF-8.
using Normalizer = std::function<AlignedText(const AlignedView& text)>;

/// How many bytes a text of `size` bytes may become: 16 times as many (NFKD's largest factor is 11,
/// and a space may become a mark of three bytes), and from 87 KB on four times and a megabyte.
size_t most_normalized(size_t size);

/// May stop where its result has more than `most` bytes.
using NormalizerStep = std::function<AlignedText(const AlignedView& text, size_t most)>;

/// All of `steps`, one after the other; null if there are none. Throws ModelError for a text of
/// which they make more than most_normalized(), where a space counts as three. `file` names them in
/// that message.
Normalizer in_order(std::vector<NormalizerStep> steps, std::string file);

/// What map(character, its source, result) appends to the result for each character of `text`.
template <typename Map>
AlignedText for_each_character(const AlignedView& text, Map map) {
  AlignedText result = AlignedText::of(text);
  result.reserve(text.text.size());
  for (std::string_view rest = text.text; !rest.empty();) {
    const Source source = text.source_of(rest);
    map(take_character(rest), source, result);
  }
  return result;
}

AlignedText lower_case(const AlignedView& text);
AlignedText without_marks(const AlignedView& text);
/// `from` is not empty. What replaces characters comes from the last of them. `most`: see
/// NormalizerStep.
AlignedText replace_all(const AlignedView& text, std::string_view from, std::string_view to,
                        size_t most = std::string::npos);
/// `to` in place of two or more spaces (U+0020) in a row.
AlignedText replace_runs_of_spaces(const AlignedView& text, std::string_view to, size_t most);
/// `to` in place of white space: two or more such characters in a row, or a tab or the end of a
/// line.
AlignedText replace_runs_and_breaks(const AlignedView& text, std::string_view to, size_t most);
/// `before` comes from the first character.
AlignedText prepend(const AlignedView& text, std::string_view before);

struct AlbertTextOptions {
  bool collapse_spaces = true;  // tokenizer_config.json's remove_space
  bool strip_accents = true;    // NFKD without combining marks; the opposite of keep_accents
  bool lower_case = true;
};

/// ALBERT's preparation of a text for SentencePiece: collapses white space, makes `` and '' a plain
/// ", strips accents, lower-cases.
AlignedText prepare_albert_text(const AlignedView& text, const AlbertTextOptions& options);

/// How many bytes of white space `text` ends with, and begins with.
size_t spaces_at_end(std::string_view text);
size_t spaces_at_start(std::string_view text);
/// A part of `text`.
std::string_view without_outer_spaces(std::string_view text, bool left = true, bool right = true);

}  // namespace phasor::internal
