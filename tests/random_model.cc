// Fills a Weights with numbers drawn from a seed and hands it to Model::create.
#include "tests/random_model.h"

#include <cmath>
#include <deque>
#include <random>
#include <utility>
#include <vector>

namespace phasor {
namespace {

/// Draws tensors and owns their memory.
class RandomTensors {
 public:
  explicit RandomTensors(uint64_t seed) : engine_(seed) {}

  /// Uniform in [middle − spread, middle + spread].
  Tensor draw(std::vector<int64_t> shape, float middle, float spread) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    std::vector<float>& values = storage_.emplace_back(count);
    for (float& value : values) {
      // Not std::uniform_real_distribution, whose numbers differ between standard libraries.
      const double unit = static_cast<double>(engine_() >> 11) * 0x1p-53;
      value = static_cast<float>(middle + spread * (2.0 * unit - 1.0));
    }
    return {.dtype = DType::kFloat32,
            .shape = std::move(shape),
            .data = reinterpret_cast<const std::byte*>(values.data())};
  }

  LinearWeights linear(int64_t out, int64_t in) {
    const float spread = std::sqrt(3.0f / static_cast<float>(in));  // variance 1/in
    return {.weight = draw({out, in}, 0.0f, spread), .bias = draw({out}, 0.0f, 0.3f)};
  }

  NormWeights norm(int64_t d_model) {
    return {.weight = draw({d_model}, 1.0f, 0.5f), .bias = draw({d_model}, 0.0f, 0.3f)};
  }

  BlockWeights block(const ModelConfig& config) {
    const int64_t C = config.d_model;
    return {.q = linear(C, C),
            .k = linear(C, C),
            .v = linear(C, C),
            .out = linear(C, C),
            .attn_norm = norm(C),
            .up = linear(config.d_ff, C),
            .down = linear(C, config.d_ff),
            .mlp_norm = norm(C)};
  }

 private:
  std::mt19937_64 engine_;
  std::deque<std::vector<float>> storage_;  // a deque, so that elements never move
};

bool has_position_table(const ModelConfig& config, const RandomModelExtras& extras) {
  return config.position.kind == PositionKind::kLearned ||
         (config.position.kind == PositionKind::kSinusoidal && extras.store_position_table);
}

}  // namespace

std::shared_ptr<const Model> random_model(const ModelConfig& config, uint64_t seed,
                                          const RandomModelExtras& extras) {
  const auto tensors = std::make_shared<RandomTensors>(seed);
  const int64_t C = config.d_model;
  const int64_t V = config.vocab_size;
  const float unit = std::sqrt(3.0f);  // variance 1

  Weights weights;
  weights.token_embedding = tensors->draw({V, C}, 0.0f, unit / config.embedding_scale);
  if (has_position_table(config, extras)) {
    const int64_t rows = config.max_positions + config.position.first_position;
    weights.position_table = tensors->draw({rows, C}, 0.0f, unit);
  }
  if (extras.token_types > 0) {
    weights.token_type_embedding = tensors->draw({extras.token_types, C}, 0.0f, 0.5f);
  }
  if (config.embedding_norm) weights.embedding_norm = tensors->norm(C);
  for (int64_t l = 0; l < config.num_layers; ++l) weights.blocks.push_back(tensors->block(config));
  if (config.final_norm) weights.final_norm = tensors->norm(C);
  if (extras.mlm_head) {
    weights.mlm_head = MlmHead{.activation = config.activation,
                               .dense = tensors->linear(C, C),
                               .norm = tensors->norm(C),
                               .decoder = weights.token_embedding,
                               .bias = tensors->draw({V}, 0.0f, 0.3f)};
  }
  return Model::create(config, std::move(weights), tensors, extras.tokenizer);
}

}  // namespace phasor
