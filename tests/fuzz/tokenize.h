// What the fuzzers of tokenizers share.
#pragma once

#include <algorithm>
#include <string_view>

#include "phasor/tokenizer.h"
#include "tests/fuzz/fuzz.h"

namespace phasor::fuzz {

/// Checks the tokens of a call with max_tokens: the first of `all`, then the special tokens behind
/// the text.
inline void require_cut(const Tokens& cut, const Tokens& all, size_t most, size_t specials) {
  const size_t size = std::min(most, all.ids.size()), left_out = all.ids.size() - size;
  require(cut.ids.size() == size && cut.pieces.size() == size, "there are as many as asked for");
  require(cut.dropped == static_cast<int64_t>(left_out), "the dropped tokens are counted");
  size_t same = 0;
  while (same < size && cut.ids[same] == all.ids[same] && cut.pieces[same] == all.pieces[same])
    ++same;
  require(same + specials >= size, "the first tokens do not depend on how many are asked for");
  for (size_t i = same; i < size; ++i) {
    require(cut.ids[i] == all.ids[i + left_out] && cut.pieces[i] == all.pieces[i + left_out],
            "the special tokens at the end stay");
  }
}

/// Encodes a text in every way; what comes out must be of the vocabulary.
inline void encode_all_ways(const Tokenizer& tokenizer, std::string_view text) {
  size_t specials = 0;
  survive([&] { specials = tokenizer.encode("").ids.size(); });
  for (const bool special : {false, true}) {
    const Tokens tokens = tokenizer.encode(text, {.parse_special = special});
    require(tokens.ids.size() == tokens.pieces.size(), "there is a piece for each id");
    require(tokens.dropped == 0, "no tokens are dropped unless fewer are asked for");
    for (const int32_t id : tokens.ids) {
      require(id >= 0 && id < tokenizer.vocab_size(), "an id is of the vocabulary");
      static_cast<void>(tokenizer.piece(id));
    }
    const Tokens placed =
        tokenizer.encode(text, {.parse_special = special, .offset_unit = OffsetUnit::kBytes});
    require(placed.ids == tokens.ids && placed.offsets.size() == placed.ids.size() &&
                placed.special.size() == placed.ids.size(),
            "offsets change no token");
    for (const auto& [begin, end] : placed.offsets) {
      require(0 <= begin && begin <= end && end <= std::ssize(text), "a span is of the text");
    }
    for (const size_t most : {specials + 1, tokens.ids.size() / 2, tokens.ids.size()}) {
      if (most <= specials) continue;
      const TokenizeOptions options = {.parse_special = special,
                                       .max_tokens = static_cast<int64_t>(most)};
      require_cut(tokenizer.encode(text, options), tokens, most, specials);
    }
  }
  survive([&] { static_cast<void>(tokenizer.encode_pair(text, "Tom bit a dog.")); });
}

/// Loads the tokenizer of these files, and encodes the part "text".
inline bool encode_in(const Folder& folder, std::string_view bytes, Names names) {
  Parts parts = parts_of(bytes, "text", names);
  folder.write(parts, names);
  return survive([&] {
    const auto tokenizer = Tokenizer::load(folder.path());
    encode_all_ways(*tokenizer, parts["text"]);
  });
}

}  // namespace phasor::fuzz
