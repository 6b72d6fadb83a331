// The likeliest tokens for the masks of a text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phasor/encoder.h"

namespace phasor::internal {

struct Filler {
  int32_t id = 0;
  std::string piece;
  double probability = 0;
};

struct MaskReport {
  int64_t token = 0;  // index in the sequence
  std::vector<Filler> fillers;
};

/// The `top_k` most probable fillers of every masked token of sequence i; none without an MLM head
/// or a mask token.
std::vector<MaskReport> mask_reports(Encoder& encoder, const Encoding& encoding, int64_t i,
                                     int64_t top_k = 5);

}  // namespace phasor::internal
