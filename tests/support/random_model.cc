// Fills a Weights with numbers drawn from a seed and hands it to Model::create.
#include "tests/support/random_model.h"

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
  RandomTensors(const ModelConfig& config, uint64_t seed) : config_(config), engine_(seed) {}

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
    return {.weight = draw({out, in}, 0.0f, spread),
            .bias = config_.linear_bias ? draw({out}, 0.0f, 0.3f) : Tensor()};
  }

  NormWeights norm(int64_t width) {
    const bool has_bias = config_.norm == NormKind::kLayerNorm;
    return {.weight = draw({width}, 1, 0.5f), .bias = has_bias ? draw({width}, 0, 0.3f) : Tensor()};
  }

  BlockWeights block() {
    const int64_t C = config_.d_model, F = config_.d_ff, heads = config_.attention_width();
    const int64_t kv_heads = config_.num_kv_heads > 0 ? config_.num_kv_heads : config_.num_heads;
    const int64_t D = config_.head_dim(), kv = kv_heads * D;
    BlockWeights block{.q = linear(heads, C),
                       .k = linear(kv, C),
                       .v = linear(kv, C),
                       .out = linear(C, heads),
                       .attn_norm = norm(C),
                       .gate = config_.gated_mlp ? linear(F, C) : LinearWeights(),
                       .up = linear(F, C),
                       .down = linear(C, F),
                       .mlp_norm = norm(C)};
    if (config_.qk_norm) {
      block.q_norm.weight = draw({D}, 1.0f, 0.5f);
      block.k_norm.weight = draw({D}, 1.0f, 0.5f);
    }
    if (config_.branch_norms) {
      block.attn_branch_norm = norm(C);
      block.mlp_branch_norm = norm(C);
    }
    return block;
  }

 private:
  const ModelConfig config_;
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
  const auto tensors = std::make_shared<RandomTensors>(config, seed);
  const int64_t C = config.d_model;
  const int64_t E = config.embedding_width();
  const int64_t V = config.vocab_size;
  const float unit = std::sqrt(3.0f);  // variance 1
  Weights weights;
  weights.token_embedding = tensors->draw({V, E}, 0.0f, unit / config.embedding_scale);
  if (has_position_table(config, extras)) {
    const int64_t rows = config.max_positions + config.position.first_position;
    weights.position_table = tensors->draw({rows, E}, 0.0f, unit);
  }
  if (extras.token_types > 0)
    weights.token_type_embedding = tensors->draw({extras.token_types, E}, 0.0f, 0.5f);
  if (config.embedding_norm) weights.embedding_norm = tensors->norm(E);
  if (config.d_embedding > 0) weights.embedding_map = tensors->linear(C, E);
  if (config.position.bias == ScoreBias::kBuckets)
    weights.relative_bias = tensors->draw({config.position.num_buckets, config.num_heads}, 0, unit);
  for (int64_t b = 0; b < config.num_blocks(); ++b) weights.blocks.push_back(tensors->block());
  if (config.final_norm) weights.final_norm = tensors->norm(C);
  if (extras.mlm_head) {
    weights.mlm_head = MlmHead{.activation = config.activation,
                               .dense = tensors->linear(E, C),
                               .norm = tensors->norm(E),
                               .decoder = weights.token_embedding,
                               .bias = tensors->draw({V}, 0.0f, 0.3f)};
  }
  if (!config.first_attn_norm) weights.blocks.front().attn_norm = {};
  if (const auto& disentangled = config.position.disentangled) {
    weights.relative_table = tensors->draw({2 * disentangled->num_buckets, C}, 0.0f, unit);
    if (disentangled->norm) weights.relative_norm = tensors->norm(C);
  }
  if (extras.classifier) {
    ClassifierHead& head = weights.classifier.emplace(*extras.classifier);
    const int64_t labels = std::ssize(head.labels);
    head.dense = {.weight = tensors->draw({C, C}, 0.0f, unit / std::sqrt(static_cast<float>(C))),
                  .bias = tensors->draw({C}, 0.0f, 0.3f)};
    if (extras.classifier_norm) head.norm.weight = tensors->draw({C}, 1.0f, 0.5f);
    head.out = {.weight = tensors->draw({labels, C}, 0.0f, 0.5f * extras.classifier_scale),
                .bias = tensors->draw({labels}, 0.0f, 0.3f)};
  }
  if (extras.change) extras.change(weights);
  return Model::create(config, std::move(weights), tensors, extras.tokenizer);
}

}  // namespace phasor
