// phasor's side of the comparison: runs batches that it reads from stdin, one JSON object a line.
//
//   phasor_peer FOLDER --threads 1 --precision f32
//
// Requests and answers are those of onnxruntime.mjs.
#include "phasor/phasor.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
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

/// Runs for about so many seconds. The first run finds cold caches: it counts only if it is alone.
json measure(phasor::Encoder& encoder, const Batch& batch, double seconds) {
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.empty() || milliseconds_since(begin) < 1e3 * seconds) {
    const auto start = Clock::now();
    encoder.encode_ids(batch);
    times.push_back(milliseconds_since(start));
  }
  if (times.size() > 1) times.erase(times.begin());
  std::sort(times.begin(), times.end());
  const double sum = std::accumulate(times.begin(), times.end(), 0.0);
  return {{"median_ms", times[times.size() / 2]},
          {"mean_ms", sum / static_cast<double>(times.size())},
          {"min_ms", times.front()}};
}

/// Writes the last hidden states, [N, C] float32.
void write_hidden(const phasor::Encoding& encoding, const std::string& file) {
  std::ofstream out(file, std::ios::binary);
  for (int64_t i = 0; i < encoding.num_sequences(); ++i) {
    const auto bytes = std::as_bytes(encoding.hidden(i));
    out.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  }
  if (!out.flush()) throw std::runtime_error("cannot write " + file);
}

json answer(phasor::Encoder& encoder, const json& request) {
  const auto batch = request.at("batch").get<Batch>();
  json result = json::object();
  if (request.contains("hidden")) write_hidden(encoder.encode_ids(batch), request["hidden"]);
  if (request.contains("seconds")) result = measure(encoder, batch, request["seconds"]);
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
