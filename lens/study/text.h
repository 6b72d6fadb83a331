// The texts of a study as token ids, and where their special tokens and masks are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "phasor/model.h"

namespace phasor::internal {

struct Input {
  std::optional<std::string> text;  // empty where ids were given
  std::vector<int32_t> token_ids;
  std::vector<std::string> pieces;  // empty where the model has no tokenizer
  int64_t invalid_bytes = 0;        // of the text, replaced by U+FFFD
  int64_t dropped = 0;              // tokens cut off
  bool mask_as_text = false;        // a mask that the model cannot fill, read as plain text
};

/// Special tokens written in the text count as such, whatever `how` says, where one is a mask that
/// the model can fill.
Input input_from_text(const Model& model, const std::string& text, TokenizeOptions how = {});

/// Takes the ids as they are; finds their pieces where there is a tokenizer.
Input input_from_ids(const Model& model, std::vector<int32_t> token_ids);

/// What the tokenizer puts round every text; it may be nothing.
Tokens special_tokens(const Tokenizer& tokenizer);

/// Where a sequence's text tokens are, ascending: all but the special tokens that the tokenizer
/// puts round every text.
std::vector<int64_t> text_places(const Model& model, std::span<const int32_t> token_ids);

/// For each input the places of its other tokens, ascending.
std::vector<std::vector<int64_t>> special_places(const Model& model, std::span<const Input> inputs);

/// Parts of the inputs that are run at once; the first `alone` each by itself.
std::vector<std::span<const Input>> batches_of(std::span<const Input> inputs, size_t alone = 0);

/// What Encoder::encode_ids takes.
std::vector<std::vector<int32_t>> token_ids_of(std::span<const Input> inputs);

/// Cuts the input to the tokens that were run.
void keep_leading_tokens(Input& input, int64_t num_tokens);

/// The id to fill in; empty where the model has no MLM head or its tokenizer no mask.
std::optional<int32_t> mask_to_fill(const Model& model);

}  // namespace phasor::internal
