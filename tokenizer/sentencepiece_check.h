// What must hold in a SentencePiece model before libsentencepiece may read it.
#pragma once

#include <string>
#include <string_view>

namespace phasor::internal {

/// What libsentencepiece may read of `model`, the bytes of `file`: all but self_test_data, texts
/// that it would tokenize while it loads, however long they take, and print where they differ.
/// Throws ModelError where `model` is not a SentencePiece model, or has what the library follows
/// without looking: a table of normalization rules that points outside itself, more matches at one
/// place than its arrays hold, pieces that overflow its stack.
std::string checked_sentencepiece_model(std::string_view model, const std::string& file);

/// What is wrong with a table of normalization rules, NormalizerSpec's precompiled_charsmap; empty
/// where all is well. See tokenizer/charsmap_check.cc.
std::string charsmap_fault(std::string_view charsmap);

}  // namespace phasor::internal
