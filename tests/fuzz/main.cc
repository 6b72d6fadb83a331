// libFuzzer's side: the program's name says which fuzzer it is ("fuzz_config"). `fuzz_NAME --seeds
// FOLDER` writes the seeds and the dictionary (FOLDER.dict).
#include <cstdio>

#include "tests/fuzz/fuzz.h"

using phasor::fuzz::Fuzzer;

namespace {

const Fuzzer* chosen = nullptr;

void write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::vector<std::string> seeds = chosen->seeds();
  seeds.insert(seeds.end(), chosen->refused.begin(), chosen->refused.end());
  for (size_t i = 0; i < seeds.size(); ++i)
    std::ofstream(folder / std::to_string(i), std::ios::binary) << seeds[i];
  std::ofstream dictionary(folder.string() + ".dict");
  for (const std::string& word : chosen->words) {
    dictionary << '"';
    for (const unsigned char byte : word) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02X", byte);
      dictionary << escaped;
    }
    dictionary << "\"\n";
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::string program = std::filesystem::path((*argv)[0]).filename();
  for (const Fuzzer& fuzzer : phasor::fuzz::fuzzers())
    if (program == std::string("fuzz_") + fuzzer.name) chosen = &fuzzer;
  if (chosen == nullptr) {
    std::fprintf(stderr, "there is no fuzzer of the name %s; there are:", program.c_str());
    for (const Fuzzer& fuzzer : phasor::fuzz::fuzzers())
      std::fprintf(stderr, " fuzz_%s", fuzzer.name);
    std::fprintf(stderr, "\n");
    std::exit(2);
  }
  if (*argc == 3 && std::string_view((*argv)[1]) == "--seeds") {
    write_seeds((*argv)[2]);
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
