// One batch, run with positions and without, and what that says about each of its sequences.
#include "infer/observation.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "phasor/lens.h"

namespace infer {
namespace {

using phasor::Hook;

std::vector<Filler> likeliest(std::span<const float> logits) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - highest);
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::min<std::ptrdiff_t>(5, std::ssize(order));
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  std::vector<Filler> fillers;
  for (int32_t id : std::span(order).first(count)) {
    fillers.push_back({.id = id, .probability = std::exp(logits[id] - highest) / sum});
  }
  return fillers;
}

}  // namespace

phasor::Trace hidden_states() {
  return phasor::Trace{Hook::kFullEmbed, Hook::kResidPost, Hook::kNormalizedResidPost,
                       Hook::kFinalNorm};
}

void AttentionSum::add(std::span<const float> pattern, int64_t num_heads, int64_t num_tokens) {
  const std::vector<double> shares = phasor::attention_by_offset(pattern, num_heads, num_tokens);
  const auto rows = static_cast<double>(num_heads * num_tokens);
  for (int64_t i = 0; i < std::ssize(shares); ++i) sums_[i - num_tokens + 1] += shares[i] * rows;
  rows_ += rows;
}

void AttentionSum::add(const AttentionSum& other) {
  for (const auto& [offset, sum] : other.sums_) sums_[offset] += sum;
  rows_ += other.rows_;
}

std::map<int64_t, double> AttentionSum::by_offset() const {
  std::map<int64_t, double> shares = sums_;
  for (auto& [offset, share] : shares) share /= rows_;
  return shares;
}

double AttentionSum::distance() const {
  double distance = 0;
  for (const auto& [offset, share] : by_offset()) {
    distance += share * static_cast<double>(std::abs(offset));
  }
  return distance;
}

bool Observation::wants(Hook hook, int64_t layer) const {
  return hook == Hook::kPattern || trace_.wants(hook, layer);
}

void Observation::observe(const phasor::HookEvent& event) {
  if (event.hook == Hook::kPattern) {
    attention_[{event.layer, event.sequence}].add(event.values, event.shape[0], event.shape[1]);
  }
  if (trace_.wants(event.hook, event.layer)) trace_.observe(event);
}

Batch observe(phasor::Encoder& encoder, std::span<const Input> inputs,
              const phasor::RunOptions& options, phasor::Trace trace) {
  const std::vector<std::vector<int32_t>> sequences = token_ids_of(inputs);

  Observation observation(std::move(trace));
  phasor::RunOptions with = options;
  with.observer = &observation;
  phasor::Encoding encoding = encoder.encode_ids(sequences, with);

  // Scaled to nothing rather than removed, so that both runs cut the same windows.
  phasor::RunOptions without = options;
  phasor::Trace states_without = hidden_states();
  without.observer = &states_without;
  without.positions = options.positions.scaled(0);
  encoder.encode_ids(sequences, without);
  return {std::move(encoding), std::move(observation), std::move(states_without)};
}

std::vector<LayerReport> layer_reports(const Batch& batch, int64_t d_model, int64_t i) {
  const phasor::Trace& trace = batch.observation.trace();
  std::vector<LayerReport> reports;
  for (int64_t l = 0; l <= trace.num_layers(); ++l) {
    const std::span<const float> with = trace.hidden_state(l, i).values;             // [T, C]
    const std::span<const float> without = batch.without.hidden_state(l, i).values;  // [T, C]
    LayerReport report{
        .norm = phasor::mean_norm(with, d_model),
        .position_effect = phasor::mean_cosine_distance(with, without, d_model),
        .attention_distance = std::nullopt,
    };
    if (l > 0) report.attention_distance = batch.observation.attention(l - 1, i).distance();
    reports.push_back(report);
  }
  return reports;
}

std::vector<MaskReport> mask_reports(phasor::Encoder& encoder, const Batch& batch, int64_t i) {
  const std::optional<int32_t> mask_id = mask_to_fill(encoder.model());
  if (!mask_id) return {};

  const std::span<const int32_t> ids = batch.encoding.token_ids(i);
  const int64_t d_model = encoder.model().config().d_model;
  std::vector<MaskReport> reports;
  for (int64_t t = 0; t < std::ssize(ids); ++t) {
    if (ids[t] != *mask_id) continue;
    const auto hidden = batch.encoding.hidden(i).subspan(t * d_model, d_model);  // [1, C]
    reports.push_back({.token = t, .fillers = likeliest(encoder.mlm_logits(hidden))});
  }
  return reports;
}

}  // namespace infer
