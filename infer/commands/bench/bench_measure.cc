// One measurement of infer bench, and how it is shown.
#include "infer/commands/bench/bench_measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "infer/commands/bench/peak_memory.h"

namespace infer {
namespace {

using Clock = std::chrono::steady_clock;

/// Seconds of each run, ascending: at least three, for about as long as was asked for.
std::vector<double> time_runs(phasor::Encoder& encoder,
                              const std::vector<std::vector<int32_t>>& token_ids, double seconds) {
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  encoder.encode_ids(token_ids);  // compiles, and fills the caches
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < 3 || since(begin) < seconds) {
    const auto start = Clock::now();
    encoder.encode_ids(token_ids);
    times.push_back(since(start));
  }
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace

Measurement measure(const phasor::Encoder& encoder, const MatmulLimit& limit,
                    const BenchShape& shape, double seconds) {
  const phasor::ModelConfig& config = encoder.model().config();
  phasor::Encoder fresh = encoder.replica();  // without the scratch memory of other shapes
  reset_peak_memory();
  const std::vector<double> times = time_runs(fresh, draw_token_ids(shape, config), seconds);
  return {.shape = shape.name,
          .tokens = shape.num_tokens(),
          .threads = encoder.threads(),
          .precision = std::string(phasor::to_string(encoder.precision())),
          .median = (times[(times.size() - 1) / 2] + times[times.size() / 2]) / 2,
          .fastest = times.front(),
          .operations = matmul_operations(config, shape.lengths),
          .limit = limit.seconds(shape.lengths),
          .peak_bytes = peak_memory(),
          .primitives = fresh.primitives()};
}

std::string to_json(const Measurement& m, const std::string& model) {
  nlohmann::ordered_json json;
  json["model"] = model;
  json["shape"] = m.shape;
  json["tokens"] = m.tokens;
  json["threads"] = m.threads;
  json["precision"] = m.precision;
  json["median_ms"] = 1e3 * m.median;
  json["min_ms"] = 1e3 * m.fastest;
  json["tokens_per_s"] = m.tokens_per_second();
  json["gflops"] = m.operations / m.median / 1e9;
  json["limit_share"] = m.limit / m.median;
  json["rss_bytes"] = m.peak_bytes;
  for (const auto& [name, implementation] : m.primitives) json["impl"][name] = implementation;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string table_head(const Output& output) {
  return output.heading(fmt::format("{:<20}{:>7}  {:<9}{:>10}{:>10}{:>11}{:>9}{:>7}{:>9}  {}",
                                    "shape", "threads", "precision", "median ms", "min ms",
                                    "tokens/s", "GFLOP/s", "limit", "memory", "oneDNN")) +
         "\n";
}

std::string table_row(const Measurement& m) {
  std::vector<std::string> implementations;  // each once
  for (const auto& [name, implementation] : m.primitives) {
    if (std::find(implementations.begin(), implementations.end(), implementation) ==
        implementations.end()) {
      implementations.push_back(implementation);
    }
  }
  return fmt::format(
      "{:<20}{:>7}  {:<9}{:>10.3f}{:>10.3f}{:>11.0f}{:>9.1f}{:>5.0f} %{:>6.0f} MB  {}\n", m.shape,
      m.threads, m.precision, 1e3 * m.median, 1e3 * m.fastest, m.tokens_per_second(),
      m.operations / m.median / 1e9, 100 * m.limit / m.median,
      static_cast<double>(m.peak_bytes) / 1e6, fmt::join(implementations, ", "));
}

}  // namespace infer
