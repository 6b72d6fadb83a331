#include "lens/study/text.h"

#include <cmath>
#include <numeric>

#include "phasor/errors.h"

namespace phasor::internal {
namespace {

std::vector<int32_t> special_ids(const Model& model) {
  return model.has_tokenizer() ? special_tokens(model.tokenizer()).ids : std::vector<int32_t>();
}

/// Of the tokens that are among `special`, or of the others.
std::vector<int64_t> places(std::span<const int32_t> special, bool among,
                            std::span<const int32_t> token_ids) {
  std::vector<int64_t> places;
  for (int64_t t = 0; t < std::ssize(token_ids); ++t) {
    if ((std::ranges::count(special, token_ids[t]) > 0) == among) places.push_back(t);
  }
  return places;
}

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

Tokens special_tokens(const Tokenizer& tokenizer) {
  try {
    return tokenizer.encode("");
  } catch (const InvalidArgument&) {  // nothing at all
    return {};
  }
}

std::optional<int32_t> mask_to_fill(const Model& model) {
  if (!model.weights().mlm_head || !model.has_tokenizer()) return std::nullopt;
  return model.tokenizer().mask_id();
}

Input read_text(const Model& model, const lens::Text& text, TokenizeOptions how) {
  if (text.token_ids) {
    Input input;
    input.tokens.ids = *text.token_ids;
    for (const int32_t id : *text.token_ids) {
      if (!model.has_tokenizer()) break;
      const bool known = id >= 0 && id < model.tokenizer().vocab_size();
      input.tokens.pieces.push_back(known ? model.tokenizer().piece(id) : "?");
    }
    const bool longer = how.max_tokens > 0 && std::ssize(input.tokens.ids) > how.max_tokens;
    if (longer) keep_leading_tokens(input.tokens, how.max_tokens);
    return input;
  }
  const Tokenizer& tokenizer = model.tokenizer();
  const std::optional<int32_t> mask = tokenizer.mask_id();
  const std::string piece = mask ? tokenizer.piece(*mask) : "[MASK]";
  const bool has_mask = text.text.find(piece) != std::string::npos;
  how.parse_special |= has_mask && mask_to_fill(model);
  return {.text = text.text,
          .tokens = tokenizer.encode(text.text, how),
          .mask_as_text = has_mask && !how.parse_special};
}

std::vector<int64_t> text_places(const Model& model, std::span<const int32_t> token_ids) {
  return places(special_ids(model), false, token_ids);
}

std::vector<std::vector<int64_t>> special_places(const Model& model,
                                                 std::span<const Input> inputs) {
  const std::vector<int32_t> special = special_ids(model);
  std::vector<std::vector<int64_t>> all;
  for (const Input& input : inputs) all.push_back(places(special, true, input.tokens.ids));
  return all;
}

void keep_leading_tokens(Tokens& tokens, int64_t num_tokens) {
  tokens.dropped += std::ssize(tokens.ids) - num_tokens;
  tokens.ids.resize(num_tokens);
  if (!tokens.pieces.empty()) tokens.pieces.resize(num_tokens);
}

std::vector<lens::Filler> likely_fillers(const Encoder& encoder, const Encoding& encoding,
                                         int64_t i, int64_t top_k) {
  const std::optional<int32_t> mask_id = mask_to_fill(encoder.model());
  if (!mask_id) return {};

  const std::span<const int32_t> ids = encoding[i].token_ids;
  const int64_t d_model = encoder.model().config().d_model;
  std::vector<lens::Filler> fillers;
  for (int64_t t = 0; t < std::ssize(ids); ++t) {
    if (ids[t] != *mask_id) continue;
    const auto hidden = encoding[i].hidden.subspan(t * d_model, d_model);  // [1, C]
    add_likeliest(encoder.model(), encoder.mlm_logits(hidden), t, top_k, fillers);
  }
  return fillers;
}

}  // namespace phasor::internal
