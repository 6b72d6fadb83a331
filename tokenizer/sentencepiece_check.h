// Checks a SentencePiece model before libsentencepiece reads it.
#pragma once

#include <string>
#include <string_view>

namespace phasor::internal {

/// `model`, the bytes of `file`, without self_test_data: texts that libsentencepiece would tokenize
/// during loading, for any length of time, printing differences. Throws ModelError if `model` is
/// not a SentencePiece model, or has something that the library does not check: a table of
/// normalization rules that points outside itself, more matches at one place than its arrays hold,
/// pieces that overflow its stack.
std::string checked_sentencepiece_model(std::string_view model, const std::string& file);

/// The fault of a table of normalization rules, NormalizerSpec's precompiled_charsmap; empty if
/// there is none. See tokenizer/charsmap_check.cc.
std::string charsmap_fault(std::string_view charsmap);

}  // namespace phasor::internal
