// Packing a model's weights: to float32, then into oneDNN's layout, one tensor at a time.

#include "engine/packed_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/onednn.h"
#include "engine/sanity.h"

namespace phasor {
namespace {

class Packer {
 public:
  Packer(const dnnl::engine& engine, Arena& arena) : engine_(engine), arena_(arena) {}

  PackedLinear linear(const std::string& name, const Tensor& weight, const Tensor& bias) {
    const int64_t out = weight.shape[0];
    const int64_t in = weight.shape[1];
    const FiniteValues plain(name + " weight", weight);
    std::vector<float> plain_bias = read_finite(name + " bias", bias);
    plain_bias.resize(out);  // zeros where there is none
    auto* const packed_bias = static_cast<float*>(arena_.take(out * sizeof(float)));
    std::copy(plain_bias.begin(), plain_bias.end(), packed_bias);
    const onednn::Desc& desc = layout(in, out);
    return {onednn::pack(engine_, plain.get().data(), in, out, desc, arena_.take(desc.get_size())),
            dnnl::memory(onednn::dense({1, out}), engine_, packed_bias)};
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
  Arena& arena_;
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
  Packer packer(engine, arena);
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

PackedMlmHead pack_mlm_head(const Model& model, const dnnl::engine& engine) {
  const MlmHead& head = *model.weights().mlm_head;
  Arena arena;
  Packer packer(engine, arena);
  PackedMlmHead packed{.arena = {},
                       .activation = head.activation,
                       .dense = packer.linear("MLM head dense", head.dense),
                       .norm = unpack(model.config().norm, "MLM head norm", head.norm),
                       .decoder = packer.linear("MLM head decoder", head.decoder, head.bias)};
  packed.arena = std::move(arena);
  return packed;
}

}  // namespace phasor
