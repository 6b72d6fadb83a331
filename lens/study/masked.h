// Hiding some of a corpus' tokens behind masks, and scoring what a model makes of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lens/study/means.h"
#include "lens/study/run.h"
#include "phasor/encoder.h"

namespace phasor::internal {

/// The texts of a corpus, tokenized: text tokens and special tokens apart.
struct Corpus {
  std::vector<int32_t> prefix, suffix;      // special tokens before and after every text
  std::vector<std::vector<int32_t>> texts;  // text tokens only, none of them empty
  int64_t num_tokens() const;
};

/// Throws ModelError where the model has no tokenizer.
Corpus tokenize_corpus(const Model& model, std::span<const std::string> lines);

/// What a model made of every mask, in the corpus' order.
struct MaskedScore {
  int64_t tokens = 0;          // text tokens seen, masked ones included
  std::vector<double> losses;  // −ln p(token), in nats
  std::vector<double> hits;    // 1 where the likeliest token is the right one, else 0
  std::vector<double> angles;  // degrees, of states in the place of masks; see Rise
  std::vector<int64_t> texts;  // each mask's text, from 0

  int64_t masks() const { return std::ssize(losses); }
  Estimate loss() const { return estimate(losses, texts); }
  Estimate accuracy() const { return estimate(hits, texts); }
};

/// A sequence with masks, and what they hide.
struct MaskedText {
  std::vector<int32_t> token_ids;
  std::vector<int64_t> places;  // of the masks that count
  std::vector<int32_t> hidden;  // what stood there
  int64_t number = 0;           // of the text; several draws of its masks have the same
};

/// 15 % of every text's tokens (rounded, at least one) are masked, drawn from `seed` and the text's
/// number; texts are cut to `max_tokens` where that is above 0. The model must have a mask token.
std::vector<MaskedText> masked_texts(const Model& model, const Corpus& corpus, int64_t max_tokens,
                                     uint64_t seed);

/// The same texts without masks: every word is in the place of one.
std::vector<MaskedText> unmasked_texts(const Corpus& corpus, int64_t max_tokens);

/// Adds what the model makes of every mask of some texts to the score of the last layer, [1], or of
/// every layer, [L + 1]; then `options.observer` is not used. The model must have an MLM head.
void add_scores(const Encoder& encoder, RunOptions options, std::span<const MaskedText> texts,
                std::span<MaskedScore> layers);

/// The scores of masked_texts(), each run by itself, by the last layer, [1], or by the logit lens
/// of every layer, [L + 1].
std::vector<MaskedScore> score_texts(const Encoder& encoder, const RunOptions& options,
                                     const Corpus& corpus, int64_t max_tokens, uint64_t seed,
                                     bool every_layer, const Stages& stages);

/// A run of the whole corpus in pieces of one length.
struct LengthScore {
  double factor = 1;                 // of the trained length
  int64_t length = 0;                // tokens of a piece, special tokens included
  std::optional<Overflow> overflow;  // empty where the positions reach as far
  MaskedScore score;
};

/// The corpus end to end, with 15 % of its tokens masked, in pieces of 1, 1.5 and 2 times
/// `trained_length` (those that the corpus fills). The same masked tokens are scored at every
/// length. Where the table of positions ends before, there is a score for each policy: clamp,
/// interpolate, window.
std::vector<LengthScore> score_lengths(const Encoder& encoder, const RunOptions& options,
                                       const Corpus& corpus, int64_t trained_length, uint64_t seed,
                                       const Stages& stages);

}  // namespace phasor::internal
