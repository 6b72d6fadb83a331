// The pre-tokenizer Metaspace of Hugging Face's tokenizers, and WhitespaceSplit before it.
#pragma once

#include <algorithm>
#include <string_view>

#include "files/utf8.h"
#include "tokenizer/aligned_text.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/sentencepiece_text.h"
#include "tokenizer/unicode.h"

namespace phasor::internal {

struct MetaspaceRules {
  bool split_white_space = false;
  bool first = true;   // a space before the text
  bool others = true;  // and before each word of `split_white_space`, and what is not joined
  bool split = true;   // at each space

  /// visit(word) for each word of a part of a text, in which ▁ stands for a space. `joined`: other
  /// parts come before it.
  template <typename Visit>
  void for_each_word(const AlignedView& text, bool joined, const Visit& visit) const {
    const char* const begin_of_text = joined ? nullptr : text.text.data();
    AlignedText marked = AlignedText::of(text);
    for (std::string_view rest = text.text; !rest.empty();) {
      if (split_white_space) rest.remove_prefix(spaces_at_start(rest));
      const std::string_view part = rest.substr(0, end_of_part(rest));
      rest.remove_prefix(part.size());
      if (part.empty()) continue;
      const bool add_space = others || (first && part.data() == begin_of_text);
      const bool has_space = part.starts_with(' ') || part.starts_with(kSpaceMark);
      marked.clear();
      if (add_space && !has_space) marked.append(kSpaceMark, text.source_of(part));
      marked.append(replace_all(text.part(part), " ", kSpaceMark));
      const AlignedView words = marked;
      for (size_t begin = 0; begin < words.text.size();) {
        const size_t next = split ? words.text.find(kSpaceMark, begin + 1) : words.text.npos;
        const size_t end = std::min(next, words.text.size());
        visit(words.substr(begin, end - begin));
        begin = end;
      }
    }
  }

 private:
  size_t end_of_part(std::string_view text) const {
    if (!split_white_space) return text.size();
    std::string_view rest = text;
    for (std::string_view after = rest; !rest.empty(); rest = after) {
      if (is_white_space(take_character(after))) break;
    }
    return text.size() - rest.size();
  }
};

}  // namespace phasor::internal
