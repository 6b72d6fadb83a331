// Whether memory stays flat: 100 000 sentences of 1 to 60 tokens, in batches of 1 to 64, through
// one Encoder of MiniLM's shape, on all cores.
//
//   flat_memory [f32|bf16|int8] [SENTENCES]
//
// Prints the resident memory at intervals; exits 1 if it grew by 5 % or more after the first 1000.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>
#include <vector>

#include "bench/bench_models.h"
#include "phasor/encoder.h"
#include "tests/support/resident_memory.h"

int main(int argc, char** argv) {
  using namespace phasor;
  const std::string_view name = argc > 1 ? argv[1] : "f32";
  const int64_t all = argc > 2 ? std::atoll(argv[2]) : 100'000;
  if (std::ranges::find(names<Precision>().all, name) == names<Precision>().all.end() ||
      all <= 1000) {
    std::fprintf(stderr, "usage: flat_memory [f32|bf16|int8] [SENTENCES, above 1000]\n");
    return 2;
  }
  const auto model = bench::make_model(bench::Size::kMiniLmL6);
  Encoder encoder(model, {.precision = parse<Precision>(name)});
  std::mt19937_64 random(1);
  const auto below = [&](uint64_t limit) { return static_cast<int64_t>(random() % limit); };
  int64_t first = 0, done = 0;
  for (const int64_t until : {int64_t{1000}, all / 10, all / 3, all}) {
    while (done < until) {
      std::vector<std::vector<int32_t>> batch(1 + below(64));
      for (auto& ids : batch) {
        ids.resize(1 + below(60));
        for (int32_t& id : ids) id = static_cast<int32_t>(below(model->config().vocab_size));
      }
      encoder.encode_ids(batch);
      done += std::ssize(batch);
    }
    const int64_t now = resident_memory();
    if (first == 0) first = now;
    std::printf("%7lld sentences: %6.1f MB, %+.1f %%\n", static_cast<long long>(done),
                static_cast<double>(now) / 1e6, 100.0 * static_cast<double>(now - first) / first);
    std::fflush(stdout);
    if (until == all) return static_cast<double>(now) < 1.05 * static_cast<double>(first) ? 0 : 1;
  }
}
