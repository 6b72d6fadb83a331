#include "lens/study/fill_in.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

#include "lens/study/text.h"

namespace phasor::internal {
namespace {

std::string piece_of(const Model& model, int32_t id) {
  if (!model.has_tokenizer() || id >= model.tokenizer().vocab_size()) return "";
  return model.tokenizer().piece(id);
}

std::vector<Filler> likeliest(const Model& model, std::span<const float> logits, int64_t top_k) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - highest);
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::clamp<std::ptrdiff_t>(top_k, 0, std::ssize(order));
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  std::vector<Filler> fillers;
  for (int32_t id : std::span(order).first(count)) {
    fillers.push_back({.id = id,
                       .piece = piece_of(model, id),
                       .probability = std::exp(logits[id] - highest) / sum});
  }
  return fillers;
}

}  // namespace

std::vector<MaskReport> mask_reports(Encoder& encoder, const Encoding& encoding, int64_t i,
                                     int64_t top_k) {
  const std::optional<int32_t> mask_id = mask_to_fill(encoder.model());
  if (!mask_id) return {};

  const std::span<const int32_t> ids = encoding.token_ids(i);
  const int64_t d_model = encoder.model().config().d_model;
  std::vector<MaskReport> reports;
  for (int64_t t = 0; t < std::ssize(ids); ++t) {
    if (ids[t] != *mask_id) continue;
    const auto hidden = encoding.hidden(i).subspan(t * d_model, d_model);  // [1, C]
    reports.push_back(
        {.token = t, .fillers = likeliest(encoder.model(), encoder.mlm_logits(hidden), top_k)});
  }
  return reports;
}

}  // namespace phasor::internal
