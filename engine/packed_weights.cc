// Packing a model's weights: to float32, then into oneDNN's layout, one tensor at a time.

#include "engine/packed_weights.h"

#include <algorithm>

#include "engine/onednn.h"

namespace phasor {
namespace {

class Packer {
 public:
  explicit Packer(const dnnl::engine& engine) : engine_(engine) {}

  PackedLinear linear(const Tensor& weight, const Tensor& bias) {
    const int64_t out = weight.shape[0];
    const int64_t in = weight.shape[1];
    const std::vector<float> plain = weight.to_float();
    dnnl::memory packed_bias(onednn::dense({1, out}), engine_);
    bias.copy_to(static_cast<float*>(packed_bias.get_data_handle()), 0, out);
    return {onednn::pack(engine_, plain.data(), in, out, layout(in, out)), packed_bias};
  }
  PackedLinear linear(const LinearWeights& weights) { return linear(weights.weight, weights.bias); }

 private:
  const onednn::Desc& layout(int64_t in, int64_t out) {
    if (!layout_ || in != in_ || out != out_) {
      layout_ = onednn::preferred_weights(engine_, in, out);
      in_ = in;
      out_ = out;
    }
    return *layout_;
  }

  const dnnl::engine& engine_;
  std::optional<onednn::Desc> layout_;  // of the last shape asked for
  int64_t in_ = 0;
  int64_t out_ = 0;
};

Norm unpack(const NormWeights& weights) {
  return {weights.weight.to_float(), weights.bias.to_float()};
}

}  // namespace

PackedWeights::PackedWeights(const Model& model, const dnnl::engine& engine) {
  const Weights& weights = model.weights();
  Packer packer(engine);
  if (weights.token_type_embedding.present()) {
    token_type_row.resize(model.config().d_model);
    weights.token_type_embedding.copy_to(token_type_row.data(), 0, model.config().d_model);
  }
  if (model.config().embedding_norm) embedding_norm = unpack(weights.embedding_norm);
  for (const BlockWeights& block : weights.blocks) {
    blocks.push_back({.q = packer.linear(block.q),
                      .k = packer.linear(block.k),
                      .v = packer.linear(block.v),
                      .out = packer.linear(block.out),
                      .attn_norm = unpack(block.attn_norm),
                      .up = packer.linear(block.up),
                      .down = packer.linear(block.down),
                      .mlp_norm = unpack(block.mlp_norm)});
  }
  if (model.config().final_norm) final_norm = unpack(weights.final_norm);
}

PackedMlmHead pack_mlm_head(const Model& model, const dnnl::engine& engine) {
  const MlmHead& head = *model.weights().mlm_head;
  Packer packer(engine);
  return {.dense = packer.linear(head.dense),
          .norm = unpack(head.norm),
          .decoder = packer.linear(head.decoder, head.bias)};
}

}  // namespace phasor
