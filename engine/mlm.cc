// Logits = E·LN(f(W h + b)) + bias, as in BERT.

#include "engine/mlm.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/linear.h"
#include "engine/norm.h"
#include "phasor/errors.h"

namespace phasor::internal {

MlmScorer::MlmScorer(const Model& model, const dnnl::engine& engine, const PackedWeights& weights)
    : config_(model.config()),
      engine_(engine),
      stream_(engine),
      head_(weights.mlm_head(model, engine)) {}

std::vector<float> MlmScorer::logits(std::span<const float> hidden) {
  const int64_t width = config_.d_model;
  const int64_t rows = static_cast<int64_t>(hidden.size()) / width;
  if (rows * width != static_cast<int64_t>(hidden.size())) {
    throw InvalidArgument(
        fmt::format("{} values are no whole hidden states of width {}", hidden.size(), width));
  }
  if (rows == 0) return {};
  Linear dense(engine_, rows, head_.dense);
  Linear decoder(engine_, rows, head_.decoder);
  void* const scratchpad =
      scratchpad_.reserve_bytes(std::max(dense.scratchpad_bytes(), decoder.scratchpad_bytes()));
  std::vector<float> transformed(rows * config_.embedding_width());  // [n, E]
  std::vector<float> logits(rows * config_.vocab_size);              // [n, V]
  dense.run(stream_, hidden.data(), head_.dense, transformed.data(), scratchpad, head_.activation);
  layer_norm(transformed.data(), rows, head_.norm, config_.norm_eps, transformed.data());
  decoder.run(stream_, transformed.data(), head_.decoder, logits.data(), scratchpad);
  return logits;
}

}  // namespace phasor::internal
