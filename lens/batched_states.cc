#include "lens/batched_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "phasor/errors.h"
#include "phasor/trace.h"

namespace phasor::internal {
namespace {

constexpr int64_t kBatchTokens = 4096;
constexpr int64_t kBatchBytes = int64_t{128} << 20;

Trace hidden_states_of(const ModelConfig& config) {
  const bool post_norm = config.norm_order == NormOrder::kPostNorm;
  return Trace{Hook::kFullEmbed, post_norm ? Hook::kNormalizedResidPost : Hook::kResidPost,
               Hook::kFinalNorm};
}

// Positions given token by token are for a single sequence.
bool one_by_one(const Positions& positions) {
  return std::any_of(positions.edits().begin(), positions.edits().end(),
                     [](const auto& edit) { return std::holds_alternative<Positions::At>(edit); });
}

/// About how many rows of width d_model `trace` records for each token.
int64_t rows_of(const Trace& trace, const ModelConfig& config) {
  int64_t rows = 0;
  for (int i = 0; i < kNumHooks; ++i) {
    const auto hook = static_cast<Hook>(i);
    if (trace.wants(hook, 0)) rows += is_block_hook(hook) ? config.num_layers : 1;
  }
  return rows;
}

}  // namespace

int64_t tokens_at_once(const Trace& trace, const ModelConfig& config, const RunOptions& options) {
  if (one_by_one(options.positions)) return 0;
  const int64_t token_bytes =
      rows_of(trace, config) * config.d_model * static_cast<int64_t>(sizeof(float));
  return std::min(kBatchTokens, kBatchBytes / token_bytes);
}

void for_each_batch(const Encoder& encoder, int64_t count, const SequenceMaker& make,
                    const RunOptions& options, const Progress& progress, Trace trace,
                    const BatchVisitor& visit) {
  const ModelConfig& config = encoder.model().config();
  const int64_t limit = tokens_at_once(trace, config, options);
  RunOptions run = options;
  run.observer = &trace;
  std::vector<std::vector<int32_t>> batch;
  int64_t tokens = 0;
  const auto run_batch = [&](int64_t first) {
    trace.clear();
    encoder.encode_ids(batch, run);
    for (int64_t i = 0; i < std::ssize(batch); ++i) {
      const std::span<const float> states = trace.hidden_state(0, i).values;
      if (std::ssize(states) != std::ssize(batch[i]) * config.d_model) {
        throw InvalidArgument(fmt::format(
            "the run cut {} tokens to {}; give no more, or choose another overflow policy",
            batch[i].size(), std::ssize(states) / config.d_model));
      }
    }
    visit(trace, first, std::ssize(batch));
    if (progress) progress(first + std::ssize(batch), count);
    batch.clear();
    tokens = 0;
  };
  for (int64_t s = 0; s < count; ++s) {
    std::vector<int32_t> ids = make(s);
    if (!batch.empty() && tokens + std::ssize(ids) > limit) run_batch(s - std::ssize(batch));
    tokens += std::ssize(ids);
    batch.push_back(std::move(ids));
  }
  if (!batch.empty()) run_batch(count - std::ssize(batch));
}

void for_each_state(const Encoder& encoder, int64_t count, const SequenceMaker& make,
                    const RunOptions& options, const Progress& progress,
                    const StateVisitor& visit) {
  const ModelConfig& config = encoder.model().config();
  const auto visit_batch = [&](const Trace& trace, int64_t first, int64_t size) {
    for (int64_t l = 0; l <= config.num_layers; ++l) {
      for (int64_t i = 0; i < size; ++i) visit(l, first + i, trace.hidden_state(l, i).values);
    }
  };
  for_each_batch(encoder, count, make, options, progress, hidden_states_of(config), visit_batch);
}

}  // namespace phasor::internal
