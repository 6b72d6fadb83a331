// Packing a model's weights: to float32, then into oneDNN's layout, one tensor at a time.

#include "engine/packed_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "engine/onednn.h"
#include "engine/sanity.h"

namespace phasor {
namespace {

class Packer {
 public:
  explicit Packer(const dnnl::engine& engine) : engine_(engine) {}

  PackedLinear linear(const std::string& name, const Tensor& weight, const Tensor& bias) {
    const int64_t out = weight.shape[0];
    const int64_t in = weight.shape[1];
    const std::vector<float> plain = read_finite(name + " weight", weight);
    const std::vector<float> plain_bias = read_finite(name + " bias", bias);
    dnnl::memory packed_bias(onednn::dense({1, out}), engine_);
    std::copy(plain_bias.begin(), plain_bias.end(),
              static_cast<float*>(packed_bias.get_data_handle()));
    return {onednn::pack(engine_, plain.data(), in, out, layout(in, out)), packed_bias};
  }
  PackedLinear linear(const std::string& name, const LinearWeights& weights) {
    return linear(name, weights.weight, weights.bias);
  }

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

Norm unpack(const std::string& name, const NormWeights& weights) {
  return {read_finite(name + " weight", weights.weight), read_finite(name + " bias", weights.bias)};
}

}  // namespace

PackedWeights::PackedWeights(const Model& model, const dnnl::engine& engine) {
  const ModelConfig& config = model.config();
  const Weights& weights = model.weights();
  Packer packer(engine);
  token_type_row = read_finite("token type embedding", weights.token_type_embedding);
  if (!token_type_row.empty()) token_type_row.resize(config.d_model);
  if (config.embedding_norm) embedding_norm = unpack("embedding norm", weights.embedding_norm);
  for (const BlockWeights& block : weights.blocks) {
    const std::string name = fmt::format("block {} ", blocks.size());
    blocks.push_back({.q = packer.linear(name + "q", block.q),
                      .k = packer.linear(name + "k", block.k),
                      .v = packer.linear(name + "v", block.v),
                      .out = packer.linear(name + "attention output", block.out),
                      .attn_norm = unpack(name + "attention norm", block.attn_norm),
                      .up = packer.linear(name + "MLP up", block.up),
                      .down = packer.linear(name + "MLP down", block.down),
                      .mlp_norm = unpack(name + "MLP norm", block.mlp_norm)});
  }
  if (config.final_norm) final_norm = unpack("final norm", weights.final_norm);
}

PackedMlmHead pack_mlm_head(const Model& model, const dnnl::engine& engine) {
  const MlmHead& head = *model.weights().mlm_head;
  Packer packer(engine);
  return {.activation = head.activation,
          .dense = packer.linear("MLM head dense", head.dense),
          .norm = unpack("MLM head norm", head.norm),
          .decoder = packer.linear("MLM head decoder", head.decoder, head.bias)};
}

}  // namespace phasor
