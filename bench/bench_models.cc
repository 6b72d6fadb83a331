// Random models of two well-known sizes, and batches of token ids.
#include "bench/bench_models.h"

#include <cstdio>
#include <numeric>
#include <random>

#include "files/refuse.h"
#include "phasor/errors.h"
#include "tests/support/random_model.h"

namespace phasor::bench {

std::string name_of(Size size) {
  return size == Size::kBundled ? "bundled" : size == Size::kMiniLmL6 ? "minilm-l6" : "bert-base";
}

std::shared_ptr<const Model> make_model(Size size) {
  const bool bundled = size == Size::kBundled;
  ModelConfig config;
  config.family = "random";
  config.d_model = bundled ? 128 : size == Size::kMiniLmL6 ? 384 : 768;
  config.d_ff = 4 * config.d_model;
  config.num_layers = size == Size::kBertBase ? 12 : 6;
  config.num_heads = bundled ? 4 : 12;
  config.vocab_size = 8192;
  config.max_positions = 512;
  config.embedding_norm = !bundled;
  config.position.kind = PositionKind::kLearned;
  return random_model(config, 1);
}

int64_t Batch::num_tokens() const {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
}

std::vector<std::vector<int32_t>> Batch::token_ids(const Model& model) const {
  const ModelConfig& config = model.config();
  std::mt19937_64 random(2);
  std::vector<std::vector<int32_t>> sequences;
  for (const int64_t length : lengths) {
    for (int32_t& id : sequences.emplace_back(length)) {
      do id = static_cast<int32_t>(random() % config.vocab_size);
      while (id == config.position.uncounted_token && config.vocab_size > 1);
    }
  }
  return sequences;
}

Batch uniform_batch(int64_t num_sequences, int64_t num_tokens) {
  return {std::to_string(num_sequences) + "x" + std::to_string(num_tokens),
          std::vector<int64_t>(num_sequences, num_tokens)};
}

Batch batch(const std::string& name) {
  constexpr int64_t kMostTokens = 1 << 20;
  long long count = 0, from = 0, to = 0;
  char more = 0;
  if (std::sscanf(name.c_str(), "%7lldx%7lld%c", &count, &from, &more) == 2) {
    to = from;
  } else if (std::sscanf(name.c_str(), "ragged:%7lld-%7lldx%7lld%c", &from, &to, &count, &more) !=
             3) {
    count = 0;
  }
  if (count < 1 || from < 1 || to < from || count * to > kMostTokens) {
    internal::refuse<InvalidArgument>(
        "--shape '{}': write 32x128 for 32 sequences of 128 tokens, ragged:4-60x64 for 64 of 4 to "
        "60, with at most {} tokens",
        name, kMostTokens);
  }
  Batch batch{name, std::vector<int64_t>(count, from)};
  std::mt19937_64 random(3);
  for (int64_t& length : batch.lengths) length += static_cast<int64_t>(random() % (to - from + 1));
  return batch;
}

std::vector<Batch> batches() {
  std::vector<Batch> all;
  for (const char* const name : {"1x16", "1x128", "32x32", "32x128", "ragged:4-128x64"})
    all.push_back(batch(name));
  return all;
}

}  // namespace phasor::bench
