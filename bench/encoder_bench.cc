// The whole encoder from token ids to hidden states:
// encode/<model>/<precision>/<batch>/threads:<n>.
//
// limit_share is the time that the run's products would take at MachineLimit's rates, measured in
// this program on as many threads, divided by the time of the run.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <string>

#include "bench/bench_models.h"
#include "bench/machine_limit.h"
#include "phasor/encoder.h"

namespace phasor::bench {
namespace {

const MachineLimit& limit_of(int threads) {
  static const MachineLimit one(1), all(0);
  return threads == 1 ? one : all;
}

void encode(benchmark::State& state, Encoder& encoder, const MachineLimit& limit,
            const Batch& batch) {
  const auto ids = batch.token_ids(encoder.model());
  encoder.encode_ids(ids);  // compiles the plans
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    const Encoding encoding = encoder.encode_ids(ids);
    benchmark::DoNotOptimize(encoding.hidden(0).data());
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  const double seconds = passed.count() / static_cast<double>(state.iterations());
  state.counters["tokens/s"] = static_cast<double>(batch.num_tokens()) / seconds;
  state.counters["limit_share"] =
      limit.seconds(encoder.model().config(), batch.lengths, encoder.precision()) / seconds;
}

void register_all(Size size, int threads, Precision precision) {
  const auto encoder = std::make_shared<std::unique_ptr<Encoder>>();  // made by the first that runs
  for (const Batch& batch : batches()) {
    const std::string name = "encode/" + name_of(size) + "/" + std::string(to_string(precision)) +
                             "/" + batch.name + "/threads:" + (threads == 1 ? "1" : "all");
    const auto run = [=](benchmark::State& state) {
      if (!*encoder) {
        *encoder = std::make_unique<Encoder>(
            make_model(size), EncoderOptions{.threads = threads, .precision = precision});
      }
      encode(state, **encoder, limit_of(threads), batch);
    };
    benchmark::RegisterBenchmark(name.c_str(), run)->UseRealTime()->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace phasor::bench

int main(int argc, char** argv) {
  using namespace phasor;
  benchmark::Initialize(&argc, argv);
  for (const bench::Size size :
       {bench::Size::kBundled, bench::Size::kMiniLmL6, bench::Size::kBertBase}) {
    for (const Precision precision :
         {Precision::kFloat32, Precision::kBfloat16, Precision::kInt8}) {
      for (const int threads : {1, 0}) bench::register_all(size, threads, precision);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
}
