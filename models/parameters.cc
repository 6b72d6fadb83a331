#include "models/parameters.h"

#include <fmt/format.h>

namespace phasor::internal {
namespace {

/// Collects parameters; the two sizes of every shape come from the config.
class Collector {
 public:
  explicit Collector(const ModelConfig& config) : config_(config) {}

  void tensor(std::string_view module, std::string_view leaf, std::vector<int64_t> shape, Tensor& t,
              bool required = true) {
    list_.push_back({module, leaf, layer_, std::move(shape), required, &t});
  }
  void linear(std::string_view module, int64_t out, int64_t in, LinearWeights& weights) {
    tensor(module, "weight", {out, in}, weights.weight);
    if (config_.linear_bias) tensor(module, "bias", {out}, weights.bias);
  }
  void norm(std::string_view module, int64_t width, NormWeights& weights) {
    tensor(module, "weight", {width}, weights.weight);
    if (config_.norm == NormKind::kLayerNorm) tensor(module, "bias", {width}, weights.bias);
  }
  void block(int64_t number, BlockWeights& block) {
    const int64_t C = config_.d_model, F = config_.d_ff, heads = config_.attention_width();
    layer_ = number;
    linear("blocks.{l}.attn.q", heads, C, block.q);
    linear("blocks.{l}.attn.k", config_.kv_width(), C, block.k);
    linear("blocks.{l}.attn.v", config_.kv_width(), C, block.v);
    if (config_.qk_norm) {  // RMS norms in every model
      tensor("blocks.{l}.attn.q_norm", "weight", {config_.head_dim()}, block.q_norm.weight);
      tensor("blocks.{l}.attn.k_norm", "weight", {config_.head_dim()}, block.k_norm.weight);
    }
    linear("blocks.{l}.attn.out", C, heads, block.out);
    if (config_.branch_norms) norm("blocks.{l}.attn_branch_norm", C, block.attn_branch_norm);
    if (number > 0 || config_.first_attn_norm) norm("blocks.{l}.attn_norm", C, block.attn_norm);
    if (config_.gated_mlp) linear("blocks.{l}.mlp.gate", F, C, block.gate);
    linear("blocks.{l}.mlp.up", F, C, block.up);
    linear("blocks.{l}.mlp.down", C, F, block.down);
    if (config_.branch_norms) norm("blocks.{l}.mlp_branch_norm", C, block.mlp_branch_norm);
    norm("blocks.{l}.mlp_norm", C, block.mlp_norm);
    layer_ = -1;
  }
  std::vector<Parameter> take() { return std::move(list_); }

 private:
  const ModelConfig& config_;
  int64_t layer_ = -1;
  std::vector<Parameter> list_;
};

int64_t position_rows(const ModelConfig& config) {
  if (config.max_positions == 0) return kAnyRows;
  return config.max_positions + config.position.first_position;
}

}  // namespace

std::string with_layer(std::string_view pattern, int64_t layer) {
  std::string name(pattern);
  if (const size_t at = name.find("{l}"); at != std::string::npos) {
    name.replace(at, 3, std::to_string(layer));
  }
  return name;
}

std::string Parameter::name() const {
  return fmt::format("{}.{}", with_layer(module, layer), leaf);
}

std::vector<Parameter> parameters(const ModelConfig& config, Weights& weights) {
  const int64_t C = config.d_model;
  const int64_t E = config.embedding_width();
  const int64_t V = config.vocab_size;
  const PositionKind positions = config.position.kind;
  weights.blocks.resize(config.num_blocks());

  Collector all(config);
  all.tensor("token_embedding", "weight", {V, E}, weights.token_embedding);
  if (positions != PositionKind::kNone) {
    all.tensor("position_embedding", "weight", {position_rows(config), E}, weights.position_table,
               positions == PositionKind::kLearned);
  }
  all.tensor("token_type_embedding", "weight", {kAnyRows, E}, weights.token_type_embedding, false);
  if (config.embedding_norm) all.norm("embedding_norm", E, weights.embedding_norm);
  if (config.d_embedding > 0) all.linear("embedding_map", C, E, weights.embedding_map);
  if (config.position.disentangled) {
    all.tensor("relative_table", "weight", {2 * config.position.disentangled->num_buckets, C},
               weights.relative_table);
    if (config.position.disentangled->norm) all.norm("relative_norm", C, weights.relative_norm);
  }
  if (config.position.bias == ScoreBias::kBuckets) {
    all.tensor("relative_bias", "weight", {config.position.num_buckets, config.num_heads},
               weights.relative_bias);
  }
  for (int64_t b = 0; b < config.num_blocks(); ++b) all.block(b, weights.blocks[b]);
  if (config.final_norm) all.norm("final_norm", C, weights.final_norm);
  if (weights.mlm_head) {
    // Both are there or neither is; which families lack them, models/families.cc says.
    all.tensor("mlm.dense", "weight", {E, C}, weights.mlm_head->dense.weight, false);
    all.tensor("mlm.dense", "bias", {E}, weights.mlm_head->dense.bias, false);
    all.tensor("mlm.norm", "weight", {E}, weights.mlm_head->norm.weight, false);
    all.tensor("mlm.norm", "bias", {E}, weights.mlm_head->norm.bias, false);
    all.tensor("mlm.decoder", "weight", {V, E}, weights.mlm_head->decoder);
    all.tensor("mlm", "bias", {V}, weights.mlm_head->bias);
  }
  if (weights.classifier || weights.token_classifier) {
    ClassifierHead& head = weights.classifier ? *weights.classifier : *weights.token_classifier;
    const int64_t labels = std::ssize(head.labels);
    all.tensor("classifier.dense", "weight", {C, C}, head.dense.weight, false);
    all.tensor("classifier.dense", "bias", {C}, head.dense.bias, false);
    all.tensor("classifier.norm", "weight", {C}, head.norm.weight, false);
    all.tensor("classifier.norm", "bias", {C}, head.norm.bias, false);
    all.tensor("classifier.out", "weight", {labels, C}, head.out.weight);
    all.tensor("classifier.out", "bias", {labels}, head.out.bias);
  }
  return all.take();
}

bool shape_fits(const Parameter& parameter, const std::vector<int64_t>& shape) {
  if (shape.size() != parameter.shape.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t wanted = parameter.shape[i];
    if (shape[i] < 1 || (wanted != kAnyRows && shape[i] != wanted)) return false;
  }
  return true;
}

}  // namespace phasor::internal
