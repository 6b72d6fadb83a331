// The batches that infer bench runs, by the names that users give them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phasor/config.h"

namespace infer {

struct BenchShape {
  std::string name;              // "32x128": 32 sequences of 128 tokens
  std::vector<int64_t> lengths;  // [B]

  int64_t num_tokens() const;
  int64_t max_tokens() const;
};

/// "32x128", or "ragged:4-60x64" for 64 sequences of 4 to 60 tokens, which are the same at every
/// call. Throws UsageError.
BenchShape parse_shape(const std::string& name);

/// Ids of the vocabulary, the same at every call, as they occur in texts: none that the model does
/// not count as a position.
std::vector<std::vector<int32_t>> draw_token_ids(const BenchShape& shape,
                                                 const phasor::ModelConfig& config);

}  // namespace infer
