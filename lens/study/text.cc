#include "lens/study/text.h"

#include <algorithm>

#include "phasor/errors.h"

namespace phasor::internal {
namespace {

constexpr size_t kBatchSize = 32;

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

Input input_from_text(const Model& model, const std::string& text, TokenizeOptions how) {
  const Tokenizer& tokenizer = model.tokenizer();
  const std::optional<int32_t> mask = tokenizer.mask_id();
  const bool has_mask = text.find(mask ? tokenizer.piece(*mask) : "[MASK]") != std::string::npos;
  const bool fills = has_mask && mask_to_fill(model);
  how.parse_special |= fills;
  Tokens tokens = tokenizer.encode(text, how);
  return {.text = text,
          .token_ids = std::move(tokens.ids),
          .pieces = std::move(tokens.pieces),
          .invalid_bytes = tokens.invalid_bytes,
          .dropped = tokens.dropped,
          .mask_as_text = has_mask && !how.parse_special};
}

Input input_from_ids(const Model& model, std::vector<int32_t> token_ids) {
  Input input{.text = std::nullopt, .token_ids = std::move(token_ids), .pieces = {}};
  if (!model.has_tokenizer()) return input;
  const Tokenizer& tokenizer = model.tokenizer();
  for (const int32_t id : input.token_ids) {
    const bool known = id >= 0 && id < tokenizer.vocab_size();
    input.pieces.push_back(known ? tokenizer.piece(id) : "?");
  }
  return input;
}

std::vector<int64_t> text_places(const Model& model, std::span<const int32_t> token_ids) {
  return places(special_ids(model), false, token_ids);
}

std::vector<std::vector<int64_t>> special_places(const Model& model,
                                                 std::span<const Input> inputs) {
  const std::vector<int32_t> special = special_ids(model);
  std::vector<std::vector<int64_t>> all;
  for (const Input& input : inputs) all.push_back(places(special, true, input.token_ids));
  return all;
}

std::vector<std::span<const Input>> batches_of(std::span<const Input> inputs, size_t alone) {
  std::vector<std::span<const Input>> batches;
  for (std::span<const Input> rest = inputs; !rest.empty();) {
    const size_t most = batches.size() < alone ? 1 : kBatchSize;
    batches.push_back(rest.first(std::min(most, rest.size())));
    rest = rest.subspan(batches.back().size());
  }
  return batches;
}

std::vector<std::vector<int32_t>> token_ids_of(std::span<const Input> inputs) {
  std::vector<std::vector<int32_t>> sequences;
  for (const Input& input : inputs) sequences.push_back(input.token_ids);
  return sequences;
}

void keep_leading_tokens(Input& input, int64_t num_tokens) {
  input.dropped += std::ssize(input.token_ids) - num_tokens;
  input.token_ids.resize(num_tokens);
  if (!input.pieces.empty()) input.pieces.resize(num_tokens);
}

}  // namespace phasor::internal
