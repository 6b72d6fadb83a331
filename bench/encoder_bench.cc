// The whole encoder from token ids to hidden states:
// encode/<model>/<precision>/<batch>/threads:<n>, of models with random weights, or of --model.
//
// limit_share is the time that the run's products would take at MachineLimit's rates, measured in
// this program on as many threads, divided by the time of the run; peak_MB the peak of resident
// memory with the model.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/bench_models.h"
#include "bench/machine_limit.h"
#include "infer/cli/command_line.h"
#include "infer/cli/options.h"
#include "phasor/encoder.h"

namespace phasor::bench {
namespace {

/// A model and how it is run.
struct Subject {
  std::string name;  // "minilm-l6/int8"
  std::function<std::shared_ptr<const Model>()> model;
  EncoderOptions options;
};

/// Makes the encoder where another one or another batch ran before, so that memory holds one,
/// without other batches' scratch memory.
const Encoder& encoder_of(const Subject& subject, const Batch& batch) {
  static std::string held;
  static std::unique_ptr<Encoder> encoder;
  const std::string wanted =
      subject.name + "/" + std::to_string(subject.options.threads) + "/" + batch.name;
  if (held != wanted) {
    encoder.reset();
    encoder = std::make_unique<Encoder>(subject.model(), subject.options);
    held = wanted;
  }
  return *encoder;
}

/// The most bytes that were resident at once, since clear_refs was written.
int64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return 1024 * kilobytes;
  }
  return 0;
}

void encode(benchmark::State& state, const Subject& subject, const Batch& batch) {
  const Encoder& encoder = encoder_of(subject, batch);
  static std::map<int, MachineLimit> limits;
  const MachineLimit& limit =
      limits.try_emplace(encoder.threads(), encoder.threads()).first->second;
  const auto ids = batch.token_ids(encoder.model());
  std::ofstream("/proc/self/clear_refs") << '5';  // forgets earlier peaks, where the system can
  encoder.encode_ids(ids);                        // compiles the plans
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    const Encoding encoding = encoder.encode_ids(ids);
    benchmark::DoNotOptimize(encoding[0].hidden.data());
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  const double seconds = passed.count() / static_cast<double>(state.iterations());
  state.counters["tokens/s"] = static_cast<double>(batch.num_tokens()) / seconds;
  state.counters["texts/s"] = static_cast<double>(batch.lengths.size()) / seconds;
  state.counters["peak_MB"] = static_cast<double>(peak_memory()) / 1e6;
  state.counters["limit_share"] =
      limit.seconds(encoder.model().config(), batch.lengths, encoder.precision()) / seconds;
}

void register_all(const Subject& subject, const std::vector<Batch>& batches) {
  const int threads = subject.options.threads;
  for (const Batch& batch : batches) {
    const std::string name = "encode/" + subject.name + "/" + batch.name +
                             "/threads:" + (threads == 0 ? "all" : std::to_string(threads));
    const auto run = [=](benchmark::State& state) { encode(state, subject, batch); };
    benchmark::RegisterBenchmark(name.c_str(), run)->UseRealTime()->Unit(benchmark::kMillisecond);
  }
}

void register_random_models() {
  for (const Size size : {Size::kBundled, Size::kMiniLmL6, Size::kBertBase}) {
    for (const Precision precision :
         {Precision::kFloat32, Precision::kBfloat16, Precision::kInt8}) {
      const std::string name = name_of(size) + "/" + std::string(to_string(precision));
      for (const int threads : {1, 0}) {
        register_all({name, [=] { return make_model(size); },
                      EncoderOptions{.threads = threads, .precision = precision}},
                     batches());
      }
    }
  }
}

/// 0 for "all".
std::vector<int> parse_threads(const std::vector<std::string>& words) {
  std::vector<int> numbers;
  for (const std::string& word : words) {
    numbers.push_back(
        word == "all" ? 0 : infer::parse_value<int>("--threads", word, infer::Range{1, 1024}));
  }
  return numbers;
}

/// Registers the benchmarks that the command line asks for. The result is the exit code where
/// there is nothing more to do.
std::optional<int> register_asked(int argc, char** argv) {
  std::string folder;
  std::vector<std::string> shapes, threads = {"1", "all"};
  std::vector<Precision> precisions = {Precision::kFloat32};
  std::vector<KernelLibrary> kernels = {KernelLibrary::kAuto};
  infer::CommandLine line("./dev bench", "Measures a model, or runs all benchmarks.",
                          {argv + 1, argv + argc});
  line.footer(
      "Google Benchmark's options begin with --benchmark_, such as\n"
      "--benchmark_format=json and --benchmark_min_time=2 (seconds).");
  line.option("-m,--model", "DIR|NAME", "a model to measure, as infer -m takes it", folder);
  line.list("--shape", "SHAPE",
            "32x128: 32 sequences of 128 tokens; ragged:4-60x64: 64 of 4 to 60 (default: "
            "1x16,1x128,32x32,32x128,ragged:4-128x64)",
            shapes, infer::Values::kCommas);
  line.list("-t,--threads", "N", "numbers of threads, or all (default: 1,all)", threads,
            infer::Values::kCommas);
  line.list("--precision", "P", "f32 (default), bf16, int8, auto", precisions,
            infer::Values::kCommas);
  line.list("--kernels", "K", "auto (default), own, onednn", kernels, infer::Values::kCommas);
  if (const auto done = line.parse()) return *done;
  if (folder.empty()) {
    if (argc > 1) throw infer::UsageError("which model? --model DIR names its folder");
    register_random_models();
    return std::nullopt;
  }
  std::vector<Batch> chosen = shapes.empty() ? batches() : std::vector<Batch>();
  for (const std::string& shape : shapes) chosen.push_back(batch(shape));
  const std::vector<int> numbers = parse_threads(threads);
  const auto model = Model::load(folder);
  for (const Batch& each : chosen) {
    const int64_t longest = std::ranges::max(each.lengths);
    if (longest > model->max_tokens().value_or(longest)) {
      throw infer::UsageError("--shape " + each.name + ": the model's positions end after " +
                              std::to_string(*model->max_tokens()));
    }
  }
  const std::string name = (std::filesystem::path(folder) / "").parent_path().filename().string();
  for (const int number : numbers) {
    for (const Precision precision : precisions) {
      for (const KernelLibrary kernel : kernels) {
        std::string way(to_string(precision));
        if (kernel != KernelLibrary::kAuto) way.append("-").append(to_string(kernel));
        register_all({name + "/" + way, [=] { return model; },
                      EncoderOptions{.threads = number, .precision = precision, .kernels = kernel}},
                     chosen);
      }
    }
  }
  return std::nullopt;
}

int run(int argc, char** argv) {
  std::vector<char*> ours, theirs = {argv[0]};
  for (int i = 0; i < argc; ++i) {
    (std::string(argv[i]).starts_with("--benchmark_") ? theirs : ours).push_back(argv[i]);
  }
  ours.push_back(nullptr);
  int their_count = static_cast<int>(theirs.size());
  benchmark::Initialize(&their_count, theirs.data());
  if (benchmark::ReportUnrecognizedArguments(their_count, theirs.data())) return infer::kUsage;
  const auto done = register_asked(static_cast<int>(ours.size()) - 1, ours.data());
  if (!done) benchmark::RunSpecifiedBenchmarks();
  return done.value_or(0);
}

}  // namespace
}  // namespace phasor::bench

int main(int argc, char** argv) {
  try {
    return phasor::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench: %s\n", error.what());
    return infer::kUsage;
  }
}
