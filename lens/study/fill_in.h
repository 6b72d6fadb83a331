// The likeliest tokens for the masks of a text.
#pragma once

#include <cstdint>
#include <vector>

#include "phasor/lens/observe.h"

namespace phasor::internal {

/// The `top_k` most probable fillers of every masked token of sequence i; none without an MLM head
/// or a mask token.
std::vector<lens::Filler> likely_fillers(Encoder& encoder, const Encoding& encoding, int64_t i,
                                         int64_t top_k = 5);

}  // namespace phasor::internal
