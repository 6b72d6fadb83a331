// Memory stays where it is, however many sentences pass.
#include "tests/support/encoder_cases.h"
#include "tests/support/resident_memory.h"
#include "tests/support/sanitizer.h"
#include "tests/support/test.h"

namespace phasor {
namespace {

TEST(MemoryTest, NothingGrowsOnceEveryRowCountHasBeenSeen) {
#if HAS_ADDRESS_SANITIZER
  GTEST_SKIP() << "the sanitizer keeps what is freed";
#endif
  if (resident_memory() == 0) GTEST_SKIP() << "there is no /proc/self/statm here";
  ModelConfig config = small_config();
  config.num_heads = 4;
  config.d_model = 128;
  config.d_ff = 512;
  config.num_layers = 1;
  const auto model = random_model(config, 3);
  for (const int threads : {1, 3}) {
    for (const Precision precision : {Precision::kFloat32, Precision::kInt8}) {
      SCOPED_TRACE(testing::Message() << threads << " threads, " << to_string(precision));
      Encoder encoder(model, {.threads = threads, .precision = precision});
      for (int64_t rows = 8; rows <= 256; rows += 8) {  // by all threads together, and by each
        const TokenIds ids = random_ids(*model, rows, 1);
        encoder.encode_ids(ids);
        encoder.encode_ids(std::vector<TokenIds>{ids, ids, ids});
      }
      constexpr int64_t kSentences = 1'500;
      const auto encode = [&] {  // the same every time; returns the number of runs
        std::mt19937_64 random(4);
        int64_t runs = 0;
        for (int64_t sentences = 0; sentences < kSentences; ++runs) {
          std::vector<TokenIds> batch(1 + random() % 32);
          for (TokenIds& ids : batch) {
            ids = random_ids(*model, 1 + static_cast<int64_t>(random() % 60), random());
          }
          encoder.encode_ids(batch);
          sentences += std::ssize(batch);
        }
        return runs;
      };
      encode();
      const int64_t resident = resident_memory();
      // What leaks grows each time, by the smallest block a run at least. Which of three threads
      // takes a group is chance, and what each keeps for a group's rows grows until it has seen
      // all; so with three, only a leak of some hundred bytes a run shows.
      bool grows = true;
      for (int pass = 0; pass < 10 && grows; ++pass) {
        const int64_t used = heap_in_use(), runs = encode();
        grows = heap_in_use() - used >= 16 * runs;
      }
      EXPECT_FALSE(grows) << "bytes leak";
      // Besides: holes in the heap, which differ from run to run by some 5 % of so small a program.
      // bench/flat_memory is strict, with a model of a usual size.
      EXPECT_LT(resident_memory() - resident, resident / 5) << "of " << resident;
    }
  }
}

}  // namespace
}  // namespace phasor
