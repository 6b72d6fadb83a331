// ALBERT's preparation of a text for SentencePiece.
#pragma once

#include <string_view>

#include "tokenizer/aligned_text.h"

namespace phasor::internal {

struct AlbertTextOptions {
  bool collapse_spaces = true;  // tokenizer_config.json's remove_space
  bool strip_accents = true;    // NFKD without combining marks; the opposite of keep_accents
  bool lower_case = true;
};

/// Collapses white space, makes `` and '' a plain ", strips accents, lower-cases. `text` is valid
/// UTF-8.
AlignedText prepare_albert_text(const AlignedView& text, const AlbertTextOptions& options);

/// Whether the tokenizer splits this piece again before its comma: "9," and "▁1999,".
bool is_number_with_comma(std::string_view piece);

}  // namespace phasor::internal
