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
    const FiniteValues plain(name + " weight", weight);
    std::vector<float> plain_bias = read_finite(name + " bias", bias);
    plain_bias.resize(out);  // zeros where there is none
    dnnl::memory packed_bias(onednn::dense({1, out}), engine_);
    std::copy(plain_bias.begin(), plain_bias.end(),
              static_cast<float*>(packed_bias.get_data_handle()));
    return {onednn::pack(engine_, plain.get().data(), in, out, layout(in, out)), packed_bias};
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

Norm unpack(NormKind kind, const std::string& name, const NormWeights& weights) {
  Norm norm{kind, read_finite(name + " weight", weights.weight),
            read_finite(name + " bias", weights.bias)};
  norm.bias.resize(norm.weight.size());
  return norm;
}

}  // namespace

PackedWeights::PackedWeights(const Model& model, const dnnl::engine& engine) {
  const ModelConfig& config = model.config();
  const Weights& weights = model.weights();
  Packer packer(engine);
  token_type_row = read_finite("token type embedding", weights.token_type_embedding);
  if (!token_type_row.empty()) token_type_row.resize(config.embedding_width());
  const auto norm = [&](const std::string& name, const NormWeights& of) {
    return unpack(config.norm, name, of);
  };
  if (config.embedding_norm) embedding_norm = norm("embedding norm", weights.embedding_norm);
  if (config.d_embedding > 0) {
    embedding_map = packer.linear("embedding map", weights.embedding_map);
  }
  if (config.position.kind == PositionKind::kRelativeBias) {
    relative_bias.emplace(config.position, read_finite("relative bias", weights.relative_bias));
  }
  const auto gate = [&](const std::string& name, const BlockWeights& block) {
    return config.gated_mlp ? std::optional(packer.linear(name + "MLP gate", block.gate))
                            : std::nullopt;
  };
  for (const BlockWeights& block : weights.blocks) {
    const std::string name = fmt::format("block {} ", blocks.size());
    blocks.push_back({.q = packer.linear(name + "q", block.q),
                      .k = packer.linear(name + "k", block.k),
                      .v = packer.linear(name + "v", block.v),
                      .out = packer.linear(name + "attention output", block.out),
                      .attn_norm = norm(name + "attention norm", block.attn_norm),
                      .gate = gate(name, block),
                      .up = packer.linear(name + "MLP up", block.up),
                      .down = packer.linear(name + "MLP down", block.down),
                      .mlp_norm = norm(name + "MLP norm", block.mlp_norm)});
    model.release_pages();  // before the next block's are read
  }
  if (config.final_norm) final_norm = norm("final norm", weights.final_norm);
}

int64_t PackedWeights::bytes() const {
  int64_t floats = std::ssize(token_type_row);
  int64_t bytes = 0;
  const auto add_norm = [&](const Norm& norm) { floats += 2 * std::ssize(norm.weight); };
  const auto add_linear = [&](const PackedLinear& linear) {
    bytes += static_cast<int64_t>(linear.weight.get_desc().get_size() +
                                  linear.bias.get_desc().get_size());
  };
  if (embedding_norm) add_norm(*embedding_norm);
  if (embedding_map) add_linear(*embedding_map);
  for (const PackedBlock& block : blocks) {
    for (const PackedLinear* linear :
         {&block.q, &block.k, &block.v, &block.out, &block.up, &block.down}) {
      add_linear(*linear);
    }
    if (block.gate) add_linear(*block.gate);
    add_norm(block.attn_norm);
    add_norm(block.mlp_norm);
  }
  if (final_norm) add_norm(*final_norm);
  return bytes + floats * static_cast<int64_t>(sizeof(float));
}

PackedMlmHead pack_mlm_head(const Model& model, const dnnl::engine& engine) {
  const MlmHead& head = *model.weights().mlm_head;
  Packer packer(engine);
  return {.activation = head.activation,
          .dense = packer.linear("MLM head dense", head.dense),
          .norm = unpack(model.config().norm, "MLM head norm", head.norm),
          .decoder = packer.linear("MLM head decoder", head.decoder, head.bias)};
}

}  // namespace phasor
