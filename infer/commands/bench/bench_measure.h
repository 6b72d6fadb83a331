// What infer bench measures: the speed of a batch of some shape, and what a precision costs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "phasor/encoder.h"

namespace infer {

struct BenchShape {
  std::string name;              // "32x128": 32 sequences of 128 tokens
  std::vector<int64_t> lengths;  // [B]

  int64_t max_tokens() const { return std::ranges::max(lengths); }
};

/// "32x128", or "ragged:4-60x64" for 64 sequences of 4 to 60 tokens, which are the same at every
/// call. Throws UsageError.
BenchShape parse_shape(const std::string& name);

struct Measurement {
  std::string shape;
  int64_t tokens = 0;
  int threads = 0;
  phasor::Precision precision = phasor::Precision::kFloat32;  // never kAuto
  double median = 0, fastest = 0;                             // seconds
  double operations = 0;                                      // of the matmuls
  int64_t peak_bytes = 0;
  std::vector<phasor::PrimitiveInfo> primitives;
  phasor::Precision asked = phasor::Precision::kFloat32;
  double mean_cosine = 1;  // with float32's states

  double tokens_per_second() const { return static_cast<double>(tokens) / median; }
  double gflops() const { return operations / median / 1e9; }
};

/// Runs batches of this shape for about so many seconds, on a replica of `encoder`.
Measurement measure(const phasor::Encoder& encoder, const BenchShape& shape, double seconds);

/// What lower precisions are held against: the last hidden states of a few fixed sentences in
/// float32, or of fixed token ids where the model has no tokenizer.
class Accuracy {
 public:
  explicit Accuracy(const std::shared_ptr<const phasor::Model>& model);
  /// The mean cosine of a token's state with float32's.
  double mean_cosine(phasor::Encoder& encoder) const;

 private:
  std::vector<std::vector<int32_t>> token_ids_;
  std::vector<float> states_;  // [N, C]
};

}  // namespace infer
