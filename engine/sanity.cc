// Finding what is wrong with a run, and whose fault it is.

#include "engine/sanity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "phasor/errors.h"

namespace phasor {
namespace {

bool all_finite(std::span<const float> values) {
  float sum = 0;  // of zeros, or NaN
#pragma omp simd reduction(+ : sum)
  for (size_t i = 0; i < values.size(); ++i) sum += values[i] * 0.0f;
  return sum == 0.0f;
}

void check_tensor(const std::string& name, const Tensor& tensor) {
  if (!tensor.present()) return;
  const std::vector<float> values = tensor.to_float();
  if (all_finite(values)) return;
  const auto bad =
      std::find_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
  throw ModelError(
      fmt::format("the model's {} holds {} at element {}; the file is damaged or was "
                  "saved from a diverged training run",
                  name, *bad, bad - values.begin()));
}

void check_linear(const std::string& name, const LinearWeights& linear) {
  check_tensor(name + " weight", linear.weight);
  check_tensor(name + " bias", linear.bias);
}

void check_norm(const std::string& name, const NormWeights& norm) {
  check_tensor(name + " weight", norm.weight);
  check_tensor(name + " bias", norm.bias);
}

void check_weights(const Weights& weights) {
  check_tensor("token embedding", weights.token_embedding);
  check_tensor("position table", weights.position_table);
  check_tensor("token type embedding", weights.token_type_embedding);
  check_norm("embedding norm", weights.embedding_norm);
  for (size_t l = 0; l < weights.blocks.size(); ++l) {
    const BlockWeights& block = weights.blocks[l];
    const std::string prefix = fmt::format("block {} ", l);
    check_linear(prefix + "q", block.q);
    check_linear(prefix + "k", block.k);
    check_linear(prefix + "v", block.v);
    check_linear(prefix + "attention output", block.out);
    check_norm(prefix + "attention norm", block.attn_norm);
    check_linear(prefix + "MLP up", block.up);
    check_linear(prefix + "MLP down", block.down);
    check_norm(prefix + "MLP norm", block.mlp_norm);
  }
  check_norm("final norm", weights.final_norm);
}

}  // namespace

void check_batch(std::span<const std::vector<int32_t>> sequences, const ModelConfig& config) {
  if (sequences.empty()) throw InvalidArgument("the batch is empty; give at least one text");
  for (size_t s = 0; s < sequences.size(); ++s) {
    if (sequences[s].empty()) {
      throw InvalidArgument(fmt::format("sequence {} has no tokens; give at least one", s));
    }
    for (size_t t = 0; t < sequences[s].size(); ++t) {
      const int32_t id = sequences[s][t];
      if (id < 0 || id >= config.vocab_size) {
        throw InvalidArgument(
            fmt::format("token {} of sequence {} is id {}; this model's ids are 0 to {}", t, s, id,
                        config.vocab_size - 1));
      }
    }
  }
}

void check_run(const RunOptions& options, int64_t num_sequences, const ModelConfig& config) {
  for (const ResidualCut& cut : options.cut_residuals) {
    if (cut.layer < 0 || cut.layer >= config.num_layers) {
      throw InvalidArgument(
          fmt::format("cannot cut the residual of layer {}: the layers are 0 to {}", cut.layer,
                      config.num_layers - 1));
    }
  }
  const auto& edits = options.positions.edits();
  const bool token_by_token = std::any_of(edits.begin(), edits.end(), [](const auto& edit) {
    return std::holds_alternative<Positions::At>(edit);
  });
  if (token_by_token && num_sequences > 1) {
    throw InvalidArgument(fmt::format(
        "positions were given token by token for a batch of {} sequences; run them one by one",
        num_sequences));
  }
}

void check_finite(std::span<const float> hidden, const Model& model) {
  if (all_finite(hidden)) return;
  check_weights(model.weights());
  throw InvalidArgument(
      "the hidden states are not finite although the weights are: the positions of this run are "
      "NaN, "
      "infinite or too large");
}

}  // namespace phasor
