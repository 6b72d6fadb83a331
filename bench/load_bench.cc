// From a folder on disk to the first result, for a model of MiniLM's size: 90 MB of float32.
//
//   load/model      Model::load: config, header, tokenizer; the weights stay in the file
//   load/encoder    Encoder(model): packing
//   load/encode     the first sentence, including all compilation
//   load/exec       `infer embed` of one sentence, from exec to exit; rss_share is its peak
//                   resident memory divided by the size of the file
//
// The file is in the system's cache. load_bench FOLDER [OPTIONS] measures another model.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "phasor/encoder.h"
#include "tests/support/family_files.h"
#include "tests/support/test_files.h"

namespace phasor::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kText = "the quick brown fox jumps over the lazy dog";

/// A BERT of this size with random weights and a vocabulary of invented words.
void write_minilm(const TempFolder& folder) {
  FamilyCase family = bert_case();
  ModelConfig& config = family.meaning;
  config.d_model = 384;
  config.d_ff = 1536;
  config.num_layers = 6;
  config.num_heads = 12;
  config.vocab_size = 30522;
  config.max_positions = 512;
  family.extras.mlm_head = false;
  family.config.update({{"hidden_size", config.d_model},
                        {"intermediate_size", config.d_ff},
                        {"num_hidden_layers", config.num_layers},
                        {"num_attention_heads", config.num_heads},
                        {"vocab_size", config.vocab_size},
                        {"max_position_embeddings", config.max_positions}});
  folder.write("config.json", family.config.dump());
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer"})");
  std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int64_t i = 5; i < config.vocab_size; ++i) {
    vocabulary += (i % 5 == 0 ? "##w" : "w") + std::to_string(i) + "\n";
  }
  folder.write("vocab.txt", vocabulary);
  const auto model = random_model(config, 1, family.extras);
  folder.write("model.safetensors", safetensors_bytes(tensors_of(family, *model)));
}

void load_model(benchmark::State& state, const fs::path& folder) {
  for (auto _ : state) benchmark::DoNotOptimize(Model::load(folder));
}

void make_encoder(benchmark::State& state, const fs::path& folder) {
  const auto model = Model::load(folder);
  for (auto _ : state) benchmark::DoNotOptimize(Encoder(model).packed_bytes());
}

void first_encode(benchmark::State& state, const fs::path& folder) {
  const auto model = Model::load(folder);
  for (auto _ : state) {
    state.PauseTiming();
    std::optional<Encoder> encoder(model);
    state.ResumeTiming();
    const Encoding encoding = encoder->encode(kText);
    benchmark::DoNotOptimize(encoding.hidden.data());
  }
}

/// Runs infer; returns its peak resident memory in bytes.
int64_t run_infer(const std::string& folder) {
  const pid_t child = fork();
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    execl(INFER_BINARY, INFER_BINARY, "embed", "-q", "-m", folder.c_str(), kText, nullptr);
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0) {
    throw std::runtime_error("infer failed");
  }
  return int64_t{1024} * usage.ru_maxrss;
}

void exec(benchmark::State& state, const fs::path& folder) {
  int64_t peak = 0;
  for (auto _ : state) peak = std::max(peak, run_infer(folder.string()));
  const auto size = static_cast<double>(fs::file_size(folder / "model.safetensors"));
  state.counters["peak_MB"] = static_cast<double>(peak) / 1e6;
  state.counters["rss_share"] = static_cast<double>(peak) / size;
}

void register_all(const fs::path& folder) {
  using Body = void (*)(benchmark::State&, const fs::path&);
  const std::pair<const char*, Body> all[] = {{"load/exec", exec},  // before this process grows
                                              {"load/model", load_model},
                                              {"load/encoder", make_encoder},
                                              {"load/encode", first_encode}};
  for (const auto& [name, body] : all) {
    auto* registered = benchmark::RegisterBenchmark(
                           name, [=, body = body](benchmark::State& state) { body(state, folder); })
                           ->UseRealTime()
                           ->Unit(benchmark::kMillisecond);
    if (body == first_encode) registered->Iterations(1);  // only the first run compiles
  }
}

}  // namespace
}  // namespace phasor::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::optional<phasor::TempFolder> own;
  std::string folder = argc > 1 ? argv[1] : "";
  if (folder.empty()) {
    phasor::bench::write_minilm(own.emplace());
    folder = own->path().string();
  }
  phasor::bench::register_all(folder);
  benchmark::RunSpecifiedBenchmarks();
}
