// Texts as token ids, where their special tokens and masks are, and what is likeliest there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "phasor/lens/observe.h"

namespace phasor::internal {

/// A text that a model has tokenized.
struct Input {
  std::optional<std::string> text = {};  // empty where ids were given
  Tokens tokens = {};                    // without pieces where the model has no tokenizer
  bool mask_as_text = false;             // a mask that the model cannot fill, read as plain text
};

/// Tokenizes a text; sets how.parse_special if the text has a mask that the model can fill. Ids are
/// taken as they are, but for how.max_tokens.
Input read_text(const Model& model, const lens::Text& text, TokenizeOptions how = {});

/// What the tokenizer puts round every text; it may be nothing.
Tokens special_tokens(const Tokenizer& tokenizer);

/// Where a sequence's text tokens are, ascending: all but the special tokens that the tokenizer
/// puts round every text.
std::vector<int64_t> text_places(const Model& model, std::span<const int32_t> token_ids);

/// For each input the places of its other tokens, ascending.
std::vector<std::vector<int64_t>> special_places(const Model& model, std::span<const Input> inputs);

/// Parts of the texts that are run at once; the first `alone` each by itself.
template <typename T>
std::vector<std::span<const T>> batches_of(std::span<const T> texts, int64_t alone = 0) {
  constexpr size_t kBatchSize = 32;
  std::vector<std::span<const T>> batches;
  for (std::span<const T> rest = texts; !rest.empty(); rest = rest.subspan(batches.back().size())) {
    const size_t most = std::ssize(batches) < alone ? 1 : kBatchSize;
    batches.push_back(rest.first(std::min(most, rest.size())));
  }
  return batches;
}

/// Cuts a text to the tokens that were run.
void keep_leading_tokens(Tokens& tokens, int64_t num_tokens);

/// The id to fill in; empty where the model has no MLM head or its tokenizer no mask.
std::optional<int32_t> mask_to_fill(const Model& model);

/// The `top_k` most probable fillers of every masked token of sequence i; none without an MLM head
/// or a mask token.
std::vector<lens::Filler> likely_fillers(const Encoder& encoder, const Encoding& encoding,
                                         int64_t i, int64_t top_k = 5);

}  // namespace phasor::internal
