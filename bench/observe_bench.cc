// What observing costs: observe/<what>/<batch>, on one thread, beside the matmul limit.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <string>

#include "bench/bench_models.h"
#include "bench/counters.h"
#include "phasor/encoder.h"
#include "phasor/matmul_limit.h"
#include "phasor/trace.h"

namespace phasor::bench {
namespace {

/// Listens, keeps nothing.
struct Listener : Observer {
  explicit Listener(bool all) : all(all) {}
  bool wants(Hook hook, int64_t) const override { return all || hook == Hook::kResidPost; }
  void observe(const HookEvent& event) override { benchmark::DoNotOptimize(event.values.data()); }
  bool all;
};

struct Subject {
  Encoder encoder = Encoder(make_model(Size::kBundled), {.threads = 1});
  MatmulLimit limit = MatmulLimit(encoder.model().config(), {.threads = 1});
};

void observe(benchmark::State& state, Subject& subject, const Batch& batch, Observer* observer) {
  const auto ids = batch.token_ids(subject.encoder.model());
  subject.encoder.encode_ids(ids);
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    const Encoding encoding = subject.encoder.encode_ids(ids, {.observer = observer});
    benchmark::DoNotOptimize(encoding.hidden(0).data());
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  set_counters(state, subject.limit, batch, passed.count());
}

void register_all() {
  const auto subject = std::make_shared<Subject>();
  const auto add = [&](const std::string& what, const std::shared_ptr<Observer>& observer) {
    for (const Batch& batch : {uniform_batch(1, 16), uniform_batch(32, 32)}) {
      benchmark::RegisterBenchmark(
          ("observe/" + what + "/" + batch.name).c_str(),
          [=](benchmark::State& state) { observe(state, *subject, batch, observer.get()); })
          ->UseRealTime()
          ->Unit(benchmark::kMicrosecond);
    }
  };
  add("nothing", nullptr);
  add("resid_post", std::make_shared<Listener>(false));
  add("everything", std::make_shared<Listener>(true));
  add("trace_resid_post", std::make_shared<Trace>(Trace{Hook::kResidPost}));
  add("trace_everything", std::make_shared<Trace>(Trace::everything()));
}

}  // namespace
}  // namespace phasor::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  phasor::bench::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
