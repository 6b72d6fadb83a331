// Makes a text valid UTF-8, as SentencePiece sees it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace phasor {

struct ValidText {
  std::string text;
  int64_t invalid_bytes = 0;
};

/// Puts U+FFFD in place of every byte that is no part of a well-formed character (overlong forms,
/// surrogates and numbers past U+10FFFF are ill-formed), and counts those bytes.
ValidText to_valid_utf8(std::string_view bytes);

}  // namespace phasor
