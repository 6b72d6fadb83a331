// The limit that every speed is held against: the time of a model's matmuls alone, at the best rate
// that oneDNN reaches on this machine with packed weights, many rows, and no thread ever waiting.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "phasor/config.h"
#include "phasor/precision.h"

namespace infer {

struct MatmulLimitOptions {
  int threads = 0;  // as in EncoderOptions
  phasor::Precision precision = phasor::Precision::kFloat32;
  double seconds = 0.5;  // to measure for, about; every matmul runs at least a few times
};

class MatmulLimit {
 public:
  /// Measures each of the model's linear maps by itself. Throws InvalidArgument (a config that no
  /// encoder can have, threads < 0) or BackendError.
  explicit MatmulLimit(const phasor::ModelConfig& config, const MatmulLimitOptions& options = {});

  /// What the matmuls of a run over sequences of these lengths would take. Linear maps count at
  /// their own rate in the precision asked for, attention's matmuls at float32's best.
  double seconds(std::span<const int64_t> lengths) const;
  /// Operations a second of the fastest of the linear maps.
  double best_rate() const { return best_rate_; }

 private:
  phasor::ModelConfig config_;
  double seconds_per_row_ = 0;  // of all linear maps of a run
  double best_rate_ = 0;
  double attention_rate_ = 0;
};

}  // namespace infer
