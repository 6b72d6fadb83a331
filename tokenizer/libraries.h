// The libraries on whose versions token ids may depend.
#pragma once

#include <string>

namespace phasor::internal {

/// "sentencepiece 0.1.97, utf8proc 2.8.0": SentencePiece as phasor was compiled with it.
std::string tokenizer_libraries();

}  // namespace phasor::internal
