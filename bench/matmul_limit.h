// The limit that every speed is held against: the time of the model's matmuls alone, at the best
// rate oneDNN reaches here with packed weights and many rows.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>

#include "bench/bench_models.h"
#include "phasor/config.h"

namespace phasor::bench {

class MatmulLimit {
 public:
  /// Measures for about half a second on `threads` threads (0: all).
  MatmulLimit(const ModelConfig& config, int threads);

  /// What the matmuls of one run over `batch` take, attention's included.
  double seconds(const Batch& batch) const;
  /// float32 operations a second of the fastest of the model's linear maps.
  double best_rate() const { return best_rate_; }

 private:
  ModelConfig config_;
  double seconds_per_row_ = 0;  // of one block's six linear maps
  double best_rate_ = 0;
};

/// Sets the counters tokens/s and limit_share: the matmuls' share of the time, 1 at the limit.
void set_counters(benchmark::State& state, const MatmulLimit& limit, const Batch& batch,
                  double seconds);

/// The operations of a matmul [rows, in] · [in, out].
double matmul_operations(int64_t rows, int64_t in, int64_t out);

}  // namespace phasor::bench
