// The counters that a benchmark of the encoder shows.
#pragma once

#include <benchmark/benchmark.h>

#include "bench/bench_models.h"
#include "bench/matmul_limit.h"

namespace phasor::bench {

/// Sets the counters tokens/s and limit_share: the matmuls' share of the time, 1 at the limit.
void set_counters(benchmark::State& state, const infer::MatmulLimit& limit, const Batch& batch,
                  double seconds);

}  // namespace phasor::bench
