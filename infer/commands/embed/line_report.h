// What infer embed tells about a line that it could not take as it is.
#pragma once

#include <cstdint>
#include <string>

#include "phasor/encoder.h"

namespace infer {

struct LineReport {
  phasor::TextReport tokens;
  int64_t bytes_left_out = 0;  // of a line longer than a line may be

  bool has_no_tokens() const { return tokens.num_tokens == 0; }  // its vector is zeros
  bool cut() const { return tokens.dropped_tokens > 0 || bytes_left_out > 0; }
  bool odd() const { return cut() || tokens.invalid_bytes > 0 || has_no_tokens(); }
  /// One clause for each oddity.
  std::string text() const;
};

}  // namespace infer
