// The whole encoder from token ids to hidden states: encode/<model>/<batch>/threads:<n>.
//
// limit_share is the time that the run's matmuls alone would take at oneDNN's best rate, measured
// in this program on as many threads, divided by the time of the run.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <string>

#include "bench/bench_models.h"
#include "bench/counters.h"
#include "bench/matmul_limit.h"
#include "phasor/encoder.h"

namespace phasor::bench {

using namespace infer;
namespace {

/// One model on one number of threads, created when the first of its benchmarks runs.
struct Subject {
  Subject(Size size, int threads)
      : encoder(make_model(size), {.threads = threads}),
        limit(encoder.model().config(), {.threads = threads}) {}

  Encoder encoder;
  MatmulLimit limit;
};

void encode(benchmark::State& state, Subject& subject, const Batch& batch) {
  const auto ids = batch.token_ids(subject.encoder.model());
  subject.encoder.encode_ids(ids);  // compiles the plans
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    const Encoding encoding = subject.encoder.encode_ids(ids);
    benchmark::DoNotOptimize(encoding.hidden(0).data());
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  set_counters(state, subject.limit, batch, passed.count());
}

void register_all() {
  for (const Size size : {Size::kBundled, Size::kMiniLmL6}) {
    for (const int threads : {1, 0}) {
      const auto subject = std::make_shared<std::unique_ptr<Subject>>();
      for (const Batch& batch : batches()) {
        const std::string name = "encode/" + name_of(size) + "/" + batch.name +
                                 "/threads:" + (threads == 1 ? "1" : "all");
        benchmark::RegisterBenchmark(name.c_str(),
                                     [=](benchmark::State& state) {
                                       if (!*subject) {
                                         *subject = std::make_unique<Subject>(size, threads);
                                       }
                                       encode(state, **subject, batch);
                                     })
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
}

}  // namespace
}  // namespace phasor::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  phasor::bench::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
