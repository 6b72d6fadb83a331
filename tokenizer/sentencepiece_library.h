// Models of the other types (BPE, words, characters), which libsentencepiece cuts.
#pragma once

#include <memory>
#include <string>

#include "tokenizer/piece_cutter.h"
#include "tokenizer/sentencepiece_check.h"

namespace phasor::internal {

/// The cutter of `model`, read from `file`. Throws ModelError if the library does not read it.
std::unique_ptr<PieceCutter> make_library_cutter(const CheckedModel& model,
                                                 const std::string& file);

}  // namespace phasor::internal
