// Random models of two well-known sizes, and batches of token ids.
#include "bench/bench_models.h"

#include <numeric>
#include <random>

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
  std::mt19937_64 random(2);
  std::vector<std::vector<int32_t>> sequences;
  for (const int64_t length : lengths) {
    auto& ids = sequences.emplace_back(length);
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % model.config().vocab_size);
  }
  return sequences;
}

Batch uniform_batch(int64_t num_sequences, int64_t num_tokens) {
  return {std::to_string(num_sequences) + "x" + std::to_string(num_tokens),
          std::vector<int64_t>(num_sequences, num_tokens)};
}

std::vector<Batch> batches() {
  std::vector<Batch> all = {uniform_batch(1, 16), uniform_batch(1, 128), uniform_batch(32, 32),
                            uniform_batch(32, 128)};
  std::mt19937_64 random(3);
  Batch ragged = {"ragged64", {}};
  for (int i = 0; i < 64; ++i) ragged.lengths.push_back(4 + static_cast<int64_t>(random() % 125));
  all.push_back(ragged);
  return all;
}

}  // namespace phasor::bench
