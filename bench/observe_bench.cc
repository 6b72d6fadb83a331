// What observing costs: observe/<what>/<batch>/threads:<n>. Each observed run follows an unobserved
// one; cost_percent compares their medians, to reduce the effect of other load.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "bench/bench_models.h"
#include "phasor/encoder.h"
#include "phasor/trace.h"

namespace phasor::bench {
namespace {

/// Observes and keeps nothing.
struct Listener : Observer {
  explicit Listener(bool all) : all(all) {}
  bool wants(Hook hook, int64_t) const override { return all || hook == Hook::kResidPost; }
  void observe(const HookEvent& event) override { benchmark::DoNotOptimize(event.values.data()); }
  bool all;
};

double seconds(Encoder& encoder, const std::vector<std::vector<int32_t>>& ids, Observer* observer) {
  const auto start = std::chrono::steady_clock::now();
  const Encoding encoding = encoder.encode_ids(ids, {.observer = observer});
  benchmark::DoNotOptimize(encoding[0].hidden.data());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
  return times[times.size() / 2];
}

void observe(benchmark::State& state, Encoder& encoder, const Batch& batch, Observer* observer) {
  const auto ids = batch.token_ids(encoder.model());
  std::vector<double> plain, observed;
  seconds(encoder, ids, nullptr);  // compiles and fills the caches
  seconds(encoder, ids, observer);
  for (auto _ : state) {
    plain.push_back(seconds(encoder, ids, nullptr));
    observed.push_back(seconds(encoder, ids, observer));
    state.SetIterationTime(observed.back());
  }
  state.counters["cost_percent"] = 100 * (median(observed) / median(plain) - 1);
}

void register_all() {
  const std::vector<std::pair<std::string, std::shared_ptr<Observer>>> observers = {
      {"nothing", nullptr},
      {"resid_post", std::make_shared<Listener>(false)},
      {"everything", std::make_shared<Listener>(true)},
      {"trace_resid_post", std::make_shared<Trace>(Trace{Hook::kResidPost})},
      {"trace_everything", std::make_shared<Trace>(Trace::everything())}};
  const auto model = make_model(Size::kMiniLmL6);
  for (const int threads : {1, 0}) {
    const auto encoder = std::make_shared<Encoder>(model, EncoderOptions{.threads = threads});
    for (const Batch& batch : {uniform_batch(1, 16), uniform_batch(32, 128)}) {
      for (const auto& [what, observer] : observers) {
        benchmark::RegisterBenchmark(("observe/" + what + "/" + batch.name +
                                      "/threads:" + std::to_string(encoder->threads()))
                                         .c_str(),
                                     [=, observer = observer](benchmark::State& state) {
                                       observe(state, *encoder, batch, observer.get());
                                     })
            ->UseManualTime()
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
