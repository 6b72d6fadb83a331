#include "bench/counters.h"

namespace phasor::bench {

void set_counters(benchmark::State& state, const infer::MatmulLimit& limit, const Batch& batch,
                  double seconds) {
  const auto iterations = static_cast<double>(state.iterations());
  state.counters["tokens/s"] = static_cast<double>(batch.num_tokens()) * iterations / seconds;
  state.counters["limit_share"] = limit.seconds(batch.lengths) * iterations / seconds;
}

}  // namespace phasor::bench
