// Each step by itself on one thread, in MiniLM-L6's sizes, labelled with the chosen implementation.
// limit_share: its rate divided by that of the processor's multiply-adds, see MachineLimit.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "bench/bench_models.h"
#include "bench/machine_limit.h"
#include "engine/attention.h"
#include "engine/kernels/kernels.h"
#include "engine/norm.h"
#include "engine/onednn.h"

namespace phasor::bench {

using namespace internal;
namespace {

constexpr int64_t kModel = 384, kHeads = 12, kHeadDim = 32;

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

double best_rate(Precision precision = Precision::kFloat32) {
  static const MachineLimit limit(1);
  return limit.rate(precision);
}

/// Of [rows, in] · [in, out].
double matmul_operations(int64_t rows, int64_t in, int64_t out) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
}

std::vector<float> values(int64_t count) { return std::vector<float>(count, 0.5f); }

/// Runs `primitive`, whose arguments are set. Returns the seconds of one run.
double time(benchmark::State& state, onednn::Primitive& primitive) {
  std::vector<std::byte> scratchpad(primitive.scratchpad_bytes());
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) primitive.run(scratchpad.data());
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  state.SetLabel(primitive.impl_info());
  return passed.count() / static_cast<double>(state.iterations());
}

void time_matmul(benchmark::State& state, onednn::Primitive& matmul, double operations) {
  const double rate = operations / time(state, matmul);
  state.counters["gflop/s"] = rate / 1e9;
  state.counters["limit_share"] = rate / best_rate();
}

void linear(benchmark::State& state, int64_t in, int64_t out) {
  const int64_t rows = state.range(0);
  const auto x = values(rows * in), weight = values(in * out), bias = values(out);
  auto y = values(rows * out);
  const auto layout = onednn::preferred_weights(cpu(), in, out);
  const dnnl::memory packed = onednn::pack(cpu(), weight.data(), layout);
  auto matmul = onednn::make_matmul(cpu(), onednn::dense({rows, in}), layout,
                                    onednn::dense({1, out}), onednn::dense({rows, out}));
  matmul.set(DNNL_ARG_SRC, x.data());
  matmul.set(DNNL_ARG_WEIGHTS, packed);
  matmul.set(DNNL_ARG_BIAS, bias.data());
  matmul.set(DNNL_ARG_DST, y.data());
  time_matmul(state, matmul, matmul_operations(rows, in, out));
}

void attention(benchmark::State& state, Precision precision) {
  const int64_t num_tokens = state.range(0);
  const auto qkv = values(3 * num_tokens * kModel);
  auto z = values(num_tokens * kModel);
  auto scratch = values(attention_scratch(num_tokens, kHeadDim, 0));
  std::vector<double> positions(num_tokens);
  std::iota(positions.begin(), positions.end(), 0.0);
  const AttentionOperands in = {.products = attention_products(precision),
                                .q = &qkv[0],
                                .k = &qkv[kModel],
                                .v = &qkv[2 * kModel],
                                .z = z.data(),
                                .stride = 3 * kModel,
                                .num_tokens = num_tokens,
                                .num_heads = kHeads,
                                .head_dim = kHeadDim,
                                .scale = 1.0f / std::sqrt(float{kHeadDim}),
                                .positions = {.positions = positions}};
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    attend({}, Threads(), {&in, 1}, {}, scratch.data());
    benchmark::ClobberMemory();
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  const double operations = 2 * matmul_operations(num_tokens, kModel, num_tokens);
  const double rate = operations * static_cast<double>(state.iterations()) / passed.count();
  state.SetLabel(in.products.name);
  state.counters["gflop/s"] = rate / 1e9;
  state.counters["limit_share"] =
      rate / best_rate(in.products.values_per_float == 2 ? precision : Precision::kFloat32);
}

/// For steps limited by memory: bytes read and written.
void set_bytes(benchmark::State& state, int64_t floats_an_iteration) {
  state.SetBytesProcessed(state.iterations() * floats_an_iteration *
                          static_cast<int64_t>(sizeof(float)));
}

void gelu(benchmark::State& state) {
  const int64_t size = state.range(0) * 4 * kModel;
  auto x = values(size);
  for (auto _ : state) {
    kernels().activate(x.data(), size, Activation::kGeluErf, false);
    benchmark::ClobberMemory();
  }
  state.SetLabel(kernels().name);
  set_bytes(state, 2 * size);
}

void residual_and_norm(benchmark::State& state) {
  const int64_t rows = state.range(0), size = rows * kModel;
  const Norm norm = {NormKind::kLayerNorm, values(kModel), values(kModel)};
  const auto f = values(size);
  auto x = values(size), out = values(size);
  for (auto _ : state) {
    layer_norm(Threads(), f.data(), x.data(), rows, norm, 1e-5f, out.data());
    benchmark::ClobberMemory();
  }
  state.SetLabel(kernels().name);
  set_bytes(state, 4 * size);
}

void register_all() {
  const auto add = [](const std::string& name, auto run) {
    benchmark::RegisterBenchmark(name.c_str(), run)
        ->Arg(16)
        ->Arg(128)
        ->Arg(512)
        ->Arg(2048)
        ->Arg(8192)
        ->Unit(benchmark::kMicrosecond);
  };
  using State = benchmark::State;
  add("qkv", [](State& state) { linear(state, kModel, 3 * kModel); });
  add("out", [](State& state) { linear(state, kModel, kModel); });
  add("up", [](State& state) { linear(state, kModel, 4 * kModel); });
  add("down", [](State& state) { linear(state, 4 * kModel, kModel); });
  add("attention", [](State& state) { attention(state, Precision::kFloat32); });
  add("attention_bf16", [](State& state) { attention(state, Precision::kBfloat16); });
  add("gelu", gelu);
  add("residual_and_norm", residual_and_norm);
}

}  // namespace
}  // namespace phasor::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  phasor::bench::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
