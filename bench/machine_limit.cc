// Loops of one instruction over registers that do not depend on one another.

#include "bench/machine_limit.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "engine/kernels/kernels.h"
#include "engine/onednn.h"
#include "engine/team.h"

namespace phasor::bench {
namespace {

using internal::onednn::may_use;

constexpr int64_t kRounds = 1 << 20;
constexpr int64_t kSums = 12;  // enough for six cycles of latency on two ports

/// Runs kRounds · kSums vectors of so many multiply-adds.
struct Loop {
  void (*run)();
  int64_t vector;
};

#if defined(__x86_64__)
// `prepare` fills register 15 with ones; `step` has \r for 0, 1, … kSums − 1, the sums, which
// `clear` sets to 0. Register 14 is free.
#define EACH(step) ".irp r,0,1,2,3,4,5,6,7,8,9,10,11\n" step "\n.endr\n"
#define LOOP(name, prepare, clear, step)                                                           \
  void name() {                                                                                    \
    int64_t rounds = kRounds;                                                                      \
    const float one = 1;                                                                           \
    asm volatile(prepare "\n" EACH(clear) "0:\n" EACH(step) "dec %0\njnz 0b"                       \
                 : "+r"(rounds)                                                                    \
                 : "m"(one)                                                                        \
                 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
                   "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc");                    \
  }
#define SSE_LOOP(name, step) \
  LOOP(name, "movss %1, %%xmm15\nshufps $0, %%xmm15, %%xmm15", "xorps %%xmm\\r, %%xmm\\r", step)
#define AVX2_LOOP(name, step) \
  LOOP(name, "vbroadcastss %1, %%ymm15", "vxorps %%ymm\\r, %%ymm\\r, %%ymm\\r", step)
#define AVX512_LOOP(name, step) \
  LOOP(name, "vbroadcastss %1, %%zmm15", "vxorps %%zmm\\r, %%zmm\\r, %%zmm\\r", step)

SSE_LOOP(f32_sse, "movaps %%xmm15, %%xmm14\nmulps %%xmm15, %%xmm14\naddps %%xmm14, %%xmm\\r")
AVX2_LOOP(f32_avx2, "vfmadd231ps %%ymm15, %%ymm15, %%ymm\\r")
AVX512_LOOP(f32_avx512, "vfmadd231ps %%zmm15, %%zmm15, %%zmm\\r")
AVX512_LOOP(bf16_avx512, "vdpbf16ps %%zmm15, %%zmm15, %%zmm\\r")
AVX512_LOOP(int8_avx512_vnni, "vpdpbusd %%zmm15, %%zmm15, %%zmm\\r")
AVX2_LOOP(int8_avx2_vnni, "%{vex%} vpdpbusd %%ymm15, %%ymm15, %%ymm\\r")
// Without VNNI pairs of products are summed in 16 bits.
AVX512_LOOP(int8_avx512, "vpmaddubsw %%zmm15, %%zmm15, %%zmm14\nvpaddw %%zmm14, %%zmm\\r, %%zmm\\r")
AVX2_LOOP(int8_avx2, "vpmaddubsw %%ymm15, %%ymm15, %%ymm14\nvpaddw %%ymm14, %%ymm\\r, %%ymm\\r")
SSE_LOOP(int8_sse, "movaps %%xmm15, %%xmm14\npmaddubsw %%xmm15, %%xmm14\npaddw %%xmm14, %%xmm\\r")

std::vector<Loop> loops(Precision precision) {
  const bool avx512 = may_use(dnnl::cpu_isa::avx512_core), avx2 = may_use(dnnl::cpu_isa::avx2);
  if (precision == Precision::kInt8) {
    if (may_use(dnnl::cpu_isa::avx512_core_vnni)) return {{int8_avx512_vnni, 64}};
    if (avx512) return {{int8_avx512, 64}};
    if (may_use(dnnl::cpu_isa::avx2_vnni)) return {{int8_avx2_vnni, 32}};
    return {avx2 ? Loop{int8_avx2, 32} : Loop{int8_sse, 16}};
  }
  std::vector<Loop> all = {avx512 ? Loop{f32_avx512, 16}
                           : avx2 ? Loop{f32_avx2, 8}
                                  : Loop{f32_sse, 4}};
  const bool halves = may_use(dnnl::cpu_isa::avx512_core_bf16);
  if (halves && precision == Precision::kBfloat16) all.push_back({bf16_avx512, 32});
  return all;
}
#else
volatile float factor = 0.5f;

void float_vectors() {
  using Vector = float __attribute__((vector_size(16)));
  const Vector f = Vector{} + factor;
  Vector sums[kSums] = {};
  for (int64_t i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
    for (Vector& sum : sums) sum += sum * f;
  }
  factor = std::accumulate(std::begin(sums), std::end(sums), Vector{})[0];
}

std::vector<Loop> loops(Precision) { return {{float_vectors, 4}}; }
#endif

/// Operations a second of one of the threads that run the loop at once.
double rate_of(const Loop& loop, int threads) {
  constexpr int kTimes = 20;
  std::vector<double> fastest(threads, 1e9);
  make_executor(threads)->run(threads, [&](int thread) {
    for (int i = 0; i < kTimes; ++i) {
      const auto start = std::chrono::steady_clock::now();
      loop.run();
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      fastest[thread] = std::min(fastest[thread], passed.count());
    }
  });
  return 2.0 * static_cast<double>(kRounds * kSums * loop.vector) / std::ranges::min(fastest);
}

/// For one row through all linear maps.
double row_operations(const ModelConfig& config) {
  const int64_t attention = 4 * config.d_model * config.attention_width();
  const int64_t mlp = (config.gated_mlp ? 3 : 2) * config.d_model * config.d_ff;
  const int64_t map = config.d_embedding * config.d_model;
  return 2.0 * static_cast<double>(config.num_layers * (attention + mlp) + map);
}

/// For the scores and the weighted values.
double attention_operations(const ModelConfig& config, std::span<const int64_t> lengths) {
  double pairs = 0;
  for (const int64_t length : lengths) {
    pairs += static_cast<double>(length) * static_cast<double>(length);
  }
  return 2 * 2.0 * pairs * static_cast<double>(config.num_layers * config.attention_width());
}

}  // namespace

MachineLimit::MachineLimit(int threads) {
  const int size = internal::team_size(threads);
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16, Precision::kInt8}) {
    double best = 0;
    for (const Loop& loop : loops(precision)) best = std::max(best, rate_of(loop, size));
    rates_[static_cast<int>(precision)] = best * size;
  }
}

double MachineLimit::seconds(const ModelConfig& config, std::span<const int64_t> lengths,
                             Precision precision) const {
  const bool halves = internal::attention_products(precision).values_per_float == 2;
  const auto rows = static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), int64_t{}));
  return rows * row_operations(config) / rate(precision) +
         attention_operations(config, lengths) /
             rate(halves ? Precision::kBfloat16 : Precision::kFloat32);
}

}  // namespace phasor::bench
