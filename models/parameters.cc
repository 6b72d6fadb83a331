// Walks a Weights and says what each of its tensors is called and how large it has to be.
#include "models/parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace phasor {
namespace {

/// Collects parameters; the two sizes of every shape come from the config.
class Collector {
 public:
  void tensor(std::string_view module, std::string_view leaf, std::vector<int64_t> shape, Tensor& t,
              bool required = true) {
    list_.push_back({module, leaf, layer_, std::move(shape), required, &t});
  }
  void linear(std::string_view module, int64_t out, int64_t in, LinearWeights& weights) {
    tensor(module, "weight", {out, in}, weights.weight);
    tensor(module, "bias", {out}, weights.bias);
  }
  void norm(std::string_view module, int64_t d_model, NormWeights& weights) {
    tensor(module, "weight", {d_model}, weights.weight);
    tensor(module, "bias", {d_model}, weights.bias);
  }
  void block(const ModelConfig& config, int64_t layer, BlockWeights& block) {
    const int64_t C = config.d_model;
    layer_ = layer;
    linear("blocks.{l}.attn.q", C, C, block.q);
    linear("blocks.{l}.attn.k", C, C, block.k);
    linear("blocks.{l}.attn.v", C, C, block.v);
    linear("blocks.{l}.attn.out", C, C, block.out);
    norm("blocks.{l}.attn_norm", C, block.attn_norm);
    linear("blocks.{l}.mlp.up", config.d_ff, C, block.up);
    linear("blocks.{l}.mlp.down", C, config.d_ff, block.down);
    norm("blocks.{l}.mlp_norm", C, block.mlp_norm);
    layer_ = -1;
  }
  std::vector<Parameter> take() { return std::move(list_); }

 private:
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
  const int64_t V = config.vocab_size;
  weights.blocks.resize(config.num_layers);

  Collector all;
  all.tensor("token_embedding", "weight", {V, C}, weights.token_embedding);
  if (config.position.kind != PositionKind::kNone) {
    all.tensor("position_embedding", "weight", {position_rows(config), C}, weights.position_table,
               config.position.kind == PositionKind::kLearned);
  }
  all.tensor("token_type_embedding", "weight", {kAnyRows, C}, weights.token_type_embedding, false);
  if (config.embedding_norm) all.norm("embedding_norm", C, weights.embedding_norm);
  for (int64_t l = 0; l < config.num_layers; ++l) all.block(config, l, weights.blocks[l]);
  if (config.final_norm) all.norm("final_norm", C, weights.final_norm);
  if (weights.mlm_head) {
    all.linear("mlm.dense", C, C, weights.mlm_head->dense);
    all.norm("mlm.norm", C, weights.mlm_head->norm);
    all.tensor("mlm.decoder", "weight", {V, C}, weights.mlm_head->decoder);
    all.tensor("mlm", "bias", {V}, weights.mlm_head->bias);
  }
  return all.take();
}

bool shape_fits(const Parameter& parameter, const std::vector<int64_t>& shape) {
  if (shape.size() != parameter.shape.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t wanted = parameter.shape[i];
    if (wanted == kAnyRows ? shape[i] < 1 : shape[i] != wanted) return false;
  }
  return true;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) {
    sizes.push_back(size == kAnyRows ? "any" : std::to_string(size));
  }
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

}  // namespace phasor
