// What the fuzzers of tokenizers share.
#pragma once

#include <string_view>

#include "phasor/tokenizer.h"
#include "tests/fuzz/fuzz.h"

namespace phasor::fuzz {

/// Encodes a text in every way; what comes out must be of the vocabulary.
inline void encode_all_ways(const Tokenizer& tokenizer, std::string_view text) {
  for (const bool special : {false, true}) {
    const Tokens tokens = tokenizer.encode(text, {.parse_special = special, .max_tokens = 100});
    require(tokens.ids.size() == tokens.pieces.size(), "there is a piece for each id");
    for (const int32_t id : tokens.ids) {
      require(id >= 0 && id < tokenizer.vocab_size(), "an id is of the vocabulary");
      static_cast<void>(tokenizer.piece(id));
    }
  }
  survive([&] { static_cast<void>(tokenizer.encode_pair(text, "Tom bit a dog.")); });
}

/// Loads the tokenizer of these files, and encodes the part "text".
inline void encode_in(const Folder& folder, std::string_view bytes, Names names) {
  Parts parts = parts_of(bytes, "text", names);
  folder.write(parts, names);
  survive([&] {
    const auto tokenizer = Tokenizer::load(folder.path());
    survive([&] { encode_all_ways(*tokenizer, parts["text"]); });
  });
}

}  // namespace phasor::fuzz
