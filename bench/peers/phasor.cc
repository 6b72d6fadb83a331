// phasor's side of the comparison: runs batches that it reads from stdin, one JSON object a line.
//
//   phasor_peer FOLDER --threads 1 --precision f32
//
// Requests and answers are those of peer.py.
#include "phasor/phasor.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using nlohmann::json;
using Batch = std::vector<std::vector<int32_t>>;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// The most memory that this program had resident.
int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  int64_t kilobytes = 0;
  for (std::string word; status >> word;) {
    if (word == "VmHWM:") status >> kilobytes;
  }
  return 1024 * kilobytes;
}

phasor::EncoderOptions options_of(int threads, const std::string& precision) {
  return {.threads = threads, .precision = phasor::parse<phasor::Precision>(precision)};
}

/// Runs for about so many seconds. The first run finds cold caches and does not count.
json measure(const std::function<void()>& run, double seconds) {
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < 2 || milliseconds_since(begin) < 1e3 * seconds) {
    const auto start = Clock::now();
    run();
    times.push_back(milliseconds_since(start));
  }
  times.erase(times.begin());
  std::sort(times.begin(), times.end());
  return {{"median_ms", times[times.size() / 2]}, {"min_ms", times.front()}};
}

void write(std::span<const float> values, const std::string& file) {
  std::ofstream out(file, std::ios::binary);
  const auto bytes = std::as_bytes(values);
  out.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  if (!out.flush()) throw std::runtime_error("cannot write " + file);
}

json answer(phasor::Encoder& encoder, const json& request) {
  const auto batch = request.value("batch", Batch());
  const auto texts = request.value("texts", std::vector<std::string>());
  json result = json::object();
  if (request.contains("output")) {
    const std::string file = request["output"];
    if (texts.empty()) {
      const phasor::Encoding states = encoder.encode_ids(batch);
      write(states.hidden, file);
    } else {
      write(encoder.embed(texts).dense, file);
    }
  }
  const auto run = [&] {
    texts.empty() ? void(encoder.encode_ids(batch)) : void(encoder.embed(texts));
  };
  if (request.contains("seconds")) result = measure(run, request["seconds"]);
  result["peak_bytes"] = peak_bytes();
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 6) throw std::runtime_error("usage: phasor_peer FOLDER --threads N --precision P");
    const int64_t base = peak_bytes();
    phasor::Encoder encoder(phasor::Model::load(argv[1]), options_of(std::atoi(argv[3]), argv[5]));
    const std::string version =
        std::string(PHASOR_VERSION) + ", oneDNN " + phasor::Encoder::backend_version();
    std::cout << json{{"version", "phasor " + version}, {"base_bytes", base}} << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
      std::cout << answer(encoder, json::parse(line)) << std::endl;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "phasor_peer: %s\n", error.what());
    return 1;
  }
}
