// The models and batches that the benchmarks run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "phasor/model.h"

namespace phasor::bench {

enum class Size {
  kBundled,   // C 128, L 6, H 4, F 512: the bundled models
  kMiniLmL6,  // C 384, L 6, H 12, F 1536
  kBertBase,  // C 768, L 12, H 12, F 3072
};

std::string name_of(Size size);

/// Random weights: the time of a run does not depend on their values.
std::shared_ptr<const Model> make_model(Size size);

struct Batch {
  std::string name;  // "32x128": 32 sequences of 128 tokens; "ragged:4-60x64": 64 of 4 to 60
  std::vector<int64_t> lengths;

  int64_t num_tokens() const;
  std::vector<std::vector<int32_t>> token_ids(const Model& model) const;
};

/// Throws InvalidArgument where `name` is none.
Batch batch(const std::string& name);
Batch uniform_batch(int64_t num_sequences, int64_t num_tokens);
/// 1x16, 1x128, 32x32, 32x128, and ragged:4-128x64.
std::vector<Batch> batches();

}  // namespace phasor::bench
