// Every fuzzer on its seeds, and on what once made it fail: tests/fuzz/found/NAME/.
#include "tests/fuzz/fuzz.h"

#include "tests/support/run_program.h"

namespace phasor::fuzz {
namespace {

class FuzzerTest : public testing::TestWithParam<Fuzzer> {};

TEST_P(FuzzerTest, TakesItsSeedsAndWhatOnceMadeItFail) {
  const Fuzzer& fuzzer = GetParam();
  const std::vector<std::string> seeds = fuzzer.seeds();
  EXPECT_FALSE(seeds.empty());
  for (const std::string& seed : seeds)
    EXPECT_TRUE(fuzzer.run(seed)) << "refused: " << testing::PrintToString(seed.substr(0, 1000));
  for (const std::string& seed : fuzzer.refused)
    EXPECT_FALSE(fuzzer.run(seed)) << "accepted: " << testing::PrintToString(seed.substr(0, 1000));
  const auto found = std::filesystem::path(PHASOR_SOURCE_DIR) / "tests/fuzz/found" / fuzzer.name;
  if (!std::filesystem::exists(found)) return;
  for (const auto& file : std::filesystem::directory_iterator(found)) {
    SCOPED_TRACE(file.path().string());
    fuzzer.run(read_text_file(file.path()));
  }
}

/// Cut anywhere, or with a byte changed: so that the fuzzers themselves work without libFuzzer.
TEST_P(FuzzerTest, TakesWhatIsNearItsSeeds) {
  const Fuzzer& fuzzer = GetParam();
  uint32_t random = 1;
  const auto below = [&random](size_t count) {
    random = random * 1664525 + 1013904223;
    return (random >> 8) % count;
  };
  const std::vector<std::string> seeds = fuzzer.seeds();
  for (int i = 0; i < 60; ++i) {
    std::string input = seeds[below(seeds.size())];
    if (input.empty()) continue;
    if (i % 3 == 0) {
      input.resize(below(input.size()));
    } else {
      input[below(input.size())] = static_cast<char>(below(256));
    }
    fuzzer.run(input);
  }
}

INSTANTIATE_TEST_SUITE_P(All, FuzzerTest, testing::ValuesIn(fuzzers().begin(), fuzzers().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace phasor::fuzz
