// Tokenizers: loading time, and texts and bytes a second on one thread.
//
// The texts are the paragraphs of ../shared/corpus/valid.txt (English prose), the tokenizers the
// bundled one and those of ../shared/tokenizers; without ../shared, the bundled one on the README's
// lines.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "phasor/tokenizer.h"
#include "tests/support/test_files.h"

namespace phasor::bench {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> read_lines(const fs::path& file) {
  std::vector<std::string> lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

void load(benchmark::State& state, const fs::path& folder) {
  for (auto _ : state) benchmark::DoNotOptimize(Tokenizer::load(folder));
}

void tokenize(benchmark::State& state, const fs::path& folder, const fs::path& file) {
  const std::shared_ptr<const Tokenizer> tokenizer = Tokenizer::load(folder);
  const std::vector<std::string> texts = read_lines(file);
  int64_t bytes = 0, tokens = 0;
  for (const std::string& text : texts) bytes += std::ssize(text);
  for (auto _ : state) {
    tokens = 0;
    for (const std::string& text : texts) tokens += std::ssize(tokenizer->encode(text).ids);
  }
  state.SetBytesProcessed(bytes * state.iterations());
  state.SetItemsProcessed(std::ssize(texts) * state.iterations());
  state.counters["tokens"] = static_cast<double>(tokens);
}

void register_all() {
  const fs::path source = PHASOR_SOURCE_DIR;
  std::vector<fs::path> folders = {source / "models/sinusoidal"};
  fs::path texts = source / "README.md";
  if (const auto shared = shared_dir()) {
    for (const auto& entry : fs::directory_iterator(*shared / "tokenizers")) {
      folders.push_back(entry.path());
    }
    texts = *shared / "corpus/valid.txt";
  }
  for (const fs::path& folder : folders) {
    const std::string name = folder.filename();
    benchmark::RegisterBenchmark(("load/" + name).c_str(), [=](auto& state) {
      load(state, folder);
    })->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("tokenize/" + name).c_str(), [=](auto& state) {
      tokenize(state, folder, texts);
    })->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace phasor::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  phasor::bench::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
