// What each kind of positions costs in a MiniLM-sized pass, and local attention as texts grow
// longer: positions/<kind>/<tokens> and window/<tokens>, on one thread.
//
// times_none is the median of the ratios of paired runs, with the positions and without, one after
// the other. us_per_token stays the same where the cost is linear in the length.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "bench/bench_models.h"
#include "phasor/encoder.h"
#include "tests/support/random_model.h"

namespace phasor::bench {
namespace {

ModelConfig minilm() {
  ModelConfig config = make_model(Size::kMiniLmL6)->config();
  config.position = {};
  config.max_positions = 8192;
  return config;
}

double seconds(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void against_none(benchmark::State& state, const ModelConfig& config, int64_t num_tokens) {
  Encoder encoder(random_model(config, 1), {.threads = 1});
  const auto ids = uniform_batch(1, num_tokens).token_ids(encoder.model());
  const RunOptions none{.positions = Positions::none()};
  encoder.encode_ids(ids);  // compiles the plans
  std::vector<double> ratios;
  for (auto _ : state) {
    const double with = seconds([&] { encoder.encode_ids(ids); });
    const double without = seconds([&] { encoder.encode_ids(ids, none); });
    state.SetIterationTime(with);
    ratios.push_back(with / without);
  }
  std::nth_element(ratios.begin(), ratios.begin() + std::ssize(ratios) / 2, ratios.end());
  state.counters["times_none"] = ratios[ratios.size() / 2];
}

void long_text(benchmark::State& state, const ModelConfig& config, int64_t num_tokens) {
  Encoder encoder(random_model(config, 1), {.threads = 1});
  const auto ids = uniform_batch(1, num_tokens).token_ids(encoder.model());
  encoder.encode_ids(ids);
  double passed = 0;
  for (auto _ : state) {
    const double time = seconds([&] { encoder.encode_ids(ids); });
    state.SetIterationTime(time);
    passed += time;
  }
  state.counters["us_per_token"] =
      1e6 * passed / static_cast<double>(state.iterations() * num_tokens);
}

void add(const std::string& name, const std::function<void(benchmark::State&)>& run) {
  benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->Unit(benchmark::kMillisecond);
}

void register_all() {
  std::vector<std::pair<std::string, PositionConfig>> kinds(6);
  kinds[0] = {"learned", {.kind = PositionKind::kLearned}};
  kinds[1] = {"buckets", {.bias = ScoreBias::kBuckets}};
  kinds[2] = {"alibi", {.bias = ScoreBias::kAlibi}};
  kinds[3] = {"rotary", {.rotary = RotaryConfig()}};
  kinds[4] = {"rotary_interleaved", {.rotary = RotaryConfig{.interleaved = true}}};
  kinds[5] = {"disentangled", {.disentangled = DisentangledConfig()}};
  for (const auto& [name, position] : kinds) {
    for (const int64_t num_tokens : {128, 512}) {
      ModelConfig config = minilm();
      config.position = position;
      add("positions/" + name + "/" + std::to_string(num_tokens),
          [=](benchmark::State& state) { against_none(state, config, num_tokens); });
    }
  }
  ModelConfig local = minilm();
  local.layer_attention.assign(local.num_layers, {.window = 64});
  for (const int64_t num_tokens : {1024, 2048, 4096, 8192}) {
    add("window/" + std::to_string(num_tokens),
        [=](benchmark::State& state) { long_text(state, local, num_tokens); });
  }
}

}  // namespace
}  // namespace phasor::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  phasor::bench::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
