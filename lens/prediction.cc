// Cross-entropy and ranks, row by row; logits of earlier layers.

#include "lens/prediction.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <cmath>

#include "lens/residual_stream.h"
#include "lens/rows.h"
#include "phasor/errors.h"

namespace phasor {
using namespace internal;

namespace {

TokenScore score(std::span<const float> logits, int32_t token_id) {
  const Eigen::Map<const Eigen::ArrayXf> all(logits.data(), std::ssize(logits));
  const double highest = all.maxCoeff();
  const double sum = (all.cast<double>() - highest).exp().sum();
  return {.loss = highest + std::log(sum) - logits[token_id],
          .rank = (all > logits[token_id]).count()};
}

}  // namespace

std::vector<TokenScore> score_tokens(std::span<const float> logits, int64_t vocab_size,
                                     std::span<const int32_t> token_ids) {
  if (vocab_size < 1 || std::ssize(logits) / vocab_size != std::ssize(token_ids) ||
      std::ssize(logits) % vocab_size != 0) {
    throw InvalidArgument(
        fmt::format("{} logits are no {} rows of {}", logits.size(), token_ids.size(), vocab_size));
  }
  std::vector<TokenScore> scores;
  for (size_t n = 0; n < token_ids.size(); ++n) {
    if (token_ids[n] < 0 || token_ids[n] >= vocab_size) {
      throw InvalidArgument(
          fmt::format("token id {} is outside the vocabulary; ids run from 0 to {}", token_ids[n],
                      vocab_size - 1));
    }
    scores.push_back(score(logits.subspan(n * vocab_size, vocab_size), token_ids[n]));
  }
  return scores;
}

std::vector<float> logit_lens(const Encoder& encoder, std::span<const float> states) {
  const ModelConfig& config = encoder.model().config();
  if (!config.final_norm || states.empty()) return encoder.mlm_logits(states);
  const int64_t rows = num_rows(states, config.d_model);
  const NormWeights& norm = encoder.model().weights().final_norm;
  const std::vector<float> weight = norm.weight.to_float();
  const std::vector<float> bias =
      norm.bias.present() ? norm.bias.to_float() : std::vector<float>(config.d_model);
  std::vector<float> normalized;
  for (int64_t n = 0; n < rows; ++n) {
    const auto state = states.subspan(n * config.d_model, config.d_model);
    std::vector<double> row(state.begin(), state.end());
    normalize_row(config, row, 1 / deviation(config, row), weight);
    for (int64_t c = 0; c < config.d_model; ++c) {
      normalized.push_back(static_cast<float>(row[c] + bias[c]));
    }
  }
  return encoder.mlm_logits(normalized);
}

}  // namespace phasor
