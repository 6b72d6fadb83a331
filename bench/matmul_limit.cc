// Timing tall matmuls with packed weights.
#include "bench/matmul_limit.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "engine/onednn.h"

namespace phasor::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The fastest of many runs of [rows, in] · [in, out] + bias.
double matmul_seconds(const dnnl::engine& engine, int64_t rows, int64_t in, int64_t out) {
  const std::vector<float> x(rows * in, 0.5f), weight(out * in, 0.25f), bias(out, 0.125f);
  std::vector<float> y(rows * out);
  const auto layout = onednn::preferred_weights(engine, in, out);
  const dnnl::memory packed = onednn::pack(engine, weight.data(), in, out, layout);
  auto matmul = onednn::make_matmul(engine, onednn::dense({rows, in}), layout,
                                    onednn::dense({1, out}), onednn::dense({rows, out}), {});
  matmul.set(DNNL_ARG_SRC, x.data());
  matmul.set(DNNL_ARG_WEIGHTS, packed);
  matmul.set(DNNL_ARG_BIAS, bias.data());
  matmul.set(DNNL_ARG_DST, y.data());
  std::vector<std::byte> scratchpad(matmul.scratchpad_bytes());
  const dnnl::stream stream(engine);

  double fastest = std::numeric_limits<double>::max();
  const auto begin = Clock::now();
  for (int run = 0; run < 5 || seconds_since(begin) < 0.05; ++run) {
    const auto start = Clock::now();
    matmul.run(stream, scratchpad.data());
    if (run > 0) fastest = std::min(fastest, seconds_since(start));
  }
  return fastest;
}

/// Seconds a row at the best of several row counts: what stays in a cache is not known beforehand.
double seconds_per_row(const dnnl::engine& engine, int64_t in, int64_t out) {
  double best = std::numeric_limits<double>::max();
  for (const int64_t rows : {256, 1024, 4096}) {
    best = std::min(best, matmul_seconds(engine, rows, in, out) / static_cast<double>(rows));
  }
  return best;
}

}  // namespace

double matmul_operations(int64_t rows, int64_t in, int64_t out) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
}

MatmulLimit::MatmulLimit(const ModelConfig& config, int threads) : config_(config) {
  const int before = omp_get_max_threads();
  if (threads > 0) omp_set_num_threads(threads);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const double project = seconds_per_row(engine, config.d_model, config.d_model);
  const double up = seconds_per_row(engine, config.d_model, config.d_ff);
  const double down = seconds_per_row(engine, config.d_ff, config.d_model);
  omp_set_num_threads(before);
  seconds_per_row_ = 4 * project + up + down;
  best_rate_ = std::max({matmul_operations(1, config.d_model, config.d_model) / project,
                         matmul_operations(1, config.d_model, config.d_ff) / up,
                         matmul_operations(1, config.d_ff, config.d_model) / down});
}

double MatmulLimit::seconds(const Batch& batch) const {
  double attention = 0;  // operations of scores and values
  for (const int64_t length : batch.lengths) {
    attention += 2 * matmul_operations(length, config_.d_model, length);
  }
  const double linear = static_cast<double>(batch.num_tokens()) * seconds_per_row_;
  return static_cast<double>(config_.num_layers) * (linear + attention / best_rate_);
}

void set_counters(benchmark::State& state, const MatmulLimit& limit, const Batch& batch,
                  double seconds) {
  const auto iterations = static_cast<double>(state.iterations());
  state.counters["tokens/s"] = static_cast<double>(batch.num_tokens()) * iterations / seconds;
  state.counters["limit_share"] = limit.seconds(batch) * iterations / seconds;
}

}  // namespace phasor::bench
