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

/// Adds those of the mask at a token.
void add_likeliest(const Model& model, std::span<const float> logits, int64_t token, int64_t top_k,
                   std::vector<lens::Filler>& fillers) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - highest);
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::clamp<std::ptrdiff_t>(top_k, 0, std::ssize(order));
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  for (int32_t id : std::span(order).first(count)) {
    fillers.push_back({.token = token,
                       .id = id,
                       .piece = piece_of(model, id),
                       .probability = std::exp(logits[id] - highest) / sum});
  }
}

}  // namespace

std::vector<lens::Filler> likely_fillers(Encoder& encoder, const Encoding& encoding, int64_t i,
                                         int64_t top_k) {
  const std::optional<int32_t> mask_id = mask_to_fill(encoder.model());
  if (!mask_id) return {};

  const std::span<const int32_t> ids = encoding.token_ids(i);
  const int64_t d_model = encoder.model().config().d_model;
  std::vector<lens::Filler> fillers;
  for (int64_t t = 0; t < std::ssize(ids); ++t) {
    if (ids[t] != *mask_id) continue;
    const auto hidden = encoding.hidden(i).subspan(t * d_model, d_model);  // [1, C]
    add_likeliest(encoder.model(), encoder.mlm_logits(hidden), t, top_k, fillers);
  }
  return fillers;
}

}  // namespace phasor::internal
