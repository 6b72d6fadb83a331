#include "lens/study/masked.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "lens/prediction.h"
#include "lens/study/run.h"
#include "lens/study/text.h"

namespace phasor::internal {
namespace {

constexpr double kMaskedShare = 0.15;
constexpr size_t kSequencesAtOnce = 32;
constexpr size_t kRowsAtOnce = 64;  // of the logits, whose rows are as long as the vocabulary

/// 15 % of `count` indices, at least one, ascending.
std::vector<int64_t> draw_masks(int64_t count, uint64_t seed) {
  std::vector<int64_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  const auto share = std::llround(kMaskedShare * static_cast<double>(count));
  const int64_t masks = std::clamp<int64_t>(share, 1, count);
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < masks; ++i) {
    std::swap(indices[i], indices[i + static_cast<int64_t>(random() % (count - i))]);
  }
  indices.resize(masks);
  std::sort(indices.begin(), indices.end());
  return indices;
}

/// `tokens` between the special tokens, with masks at `masks`; those below `num_scored` count.
MaskedText masked_text(const Corpus& corpus, std::span<const int32_t> tokens,
                       std::span<const int64_t> masks, int32_t mask_id, int64_t num_scored) {
  MaskedText text;
  text.token_ids = corpus.prefix;
  text.token_ids.insert(text.token_ids.end(), tokens.begin(), tokens.end());
  text.token_ids.insert(text.token_ids.end(), corpus.suffix.begin(), corpus.suffix.end());
  for (const int64_t mask : masks) {
    const int64_t place = mask + std::ssize(corpus.prefix);
    if (mask < num_scored) {
      text.places.push_back(place);
      text.hidden.push_back(text.token_ids[place]);
    }
    text.token_ids[place] = mask_id;
  }
  return text;
}

/// What a text keeps where it has room for `max_tokens`, special ones included; 0: all.
std::span<const int32_t> leading_words(const Corpus& corpus, size_t text, int64_t max_tokens) {
  const std::span<const int32_t> words = corpus.texts[text];
  const auto room = max_tokens - std::ssize(corpus.prefix) - std::ssize(corpus.suffix);
  const bool fits = max_tokens == 0 || std::ssize(words) <= room;
  return fits ? words : words.first(std::max<int64_t>(room, 1));
}

/// The scores of the last layer, [1], or of every layer, [L + 1].
std::vector<MaskedScore> score(const Encoder& encoder, const RunOptions& options,
                               std::span<const MaskedText> texts, int64_t num_layers,
                               int64_t tokens, const Stages& stages, std::string_view what) {
  std::vector<MaskedScore> layers(num_layers);
  for (MaskedScore& layer : layers) layer.tokens = tokens;
  for (size_t first = 0; first < texts.size(); first += kSequencesAtOnce) {
    stages.show(what, static_cast<int64_t>(first), std::ssize(texts));
    const size_t count = std::min(kSequencesAtOnce, texts.size() - first);
    add_scores(encoder, options, texts.subspan(first, count), layers);
  }
  return layers;
}

/// The whole corpus in pieces of so many text tokens, without the last piece where it is short.
std::vector<MaskedText> cut(const Corpus& corpus, std::span<const int32_t> tokens,
                            const std::vector<int64_t>& masks, int64_t piece, int32_t mask_id,
                            int64_t num_scored) {
  std::vector<MaskedText> texts;
  for (int64_t first = 0; first < num_scored; first += piece) {
    std::vector<int64_t> inside;
    for (const int64_t mask : masks) {
      if (mask >= first && mask < first + piece) inside.push_back(mask - first);
    }
    texts.push_back(
        masked_text(corpus, tokens.subspan(first, piece), inside, mask_id, num_scored - first));
    texts.back().number = first / piece;
  }
  return texts;
}

}  // namespace

int64_t Corpus::num_tokens() const {
  int64_t count = 0;
  for (const std::vector<int32_t>& text : texts) count += std::ssize(text);
  return count;
}

Corpus tokenize_corpus(const Model& model, std::span<const std::string> lines) {
  Corpus corpus;
  for (const std::string& line : lines) {
    const std::vector<int32_t> ids = model.tokenizer().encode(line, {.ids_only = true}).ids;
    const std::vector<int64_t> places = text_places(model, ids);
    if (places.empty()) continue;
    std::vector<int32_t>& text = corpus.texts.emplace_back();
    for (const int64_t place : places) text.push_back(ids[place]);
    corpus.prefix.assign(ids.begin(), ids.begin() + places.front());
    corpus.suffix.assign(ids.begin() + places.back() + 1, ids.end());
  }
  return corpus;
}

void add_scores(const Encoder& encoder, RunOptions options, std::span<const MaskedText> texts,
                std::span<MaskedScore> layers) {
  std::vector<std::vector<int32_t>> sequences;
  std::vector<int32_t> hidden;   // [masks]
  std::vector<int64_t> text_of;  // [masks]
  for (const MaskedText& text : texts) {
    hidden.insert(hidden.end(), text.hidden.begin(), text.hidden.end());
    text_of.resize(hidden.size(), text.number);
    sequences.push_back(text.token_ids);
  }
  Trace trace = hidden_states();
  if (layers.size() > 1) options.observer = &trace;
  const Encoding encoding = encoder.encode_ids(sequences, options);
  const ModelConfig& config = encoder.model().config();
  for (size_t l = 0; l < layers.size(); ++l) {
    const bool last = l + 1 == layers.size();
    std::vector<float> states;  // [masks, C]
    for (int64_t i = 0; i < std::ssize(texts); ++i) {
      const std::span<const float> of_text =
          last ? encoding[i].hidden : trace.hidden_state(static_cast<int64_t>(l), i).values;
      for (const int64_t place : texts[i].places) {
        const auto row = of_text.subspan(place * config.d_model, config.d_model);
        states.insert(states.end(), row.begin(), row.end());
      }
    }
    layers[l].texts.insert(layers[l].texts.end(), text_of.begin(), text_of.end());
    for (size_t first = 0; first < hidden.size(); first += kRowsAtOnce) {
      const size_t count = std::min(kRowsAtOnce, hidden.size() - first);
      const auto rows = std::span(states).subspan(first * config.d_model, count * config.d_model);
      const std::vector<float> logits = last ? encoder.mlm_logits(rows) : logit_lens(encoder, rows);
      for (const TokenScore& score :
           score_tokens(logits, config.vocab_size, std::span(hidden).subspan(first, count))) {
        layers[l].losses.push_back(score.loss);
        layers[l].hits.push_back(score.rank == 0 ? 1 : 0);
      }
    }
  }
}

std::vector<MaskedText> masked_texts(const Model& model, const Corpus& corpus, int64_t max_tokens,
                                     uint64_t seed) {
  const int32_t mask_id = mask_to_fill(model).value();
  std::vector<MaskedText> texts;
  for (size_t i = 0; i < corpus.texts.size(); ++i) {
    const std::span<const int32_t> text = leading_words(corpus, i, max_tokens);
    const std::vector<int64_t> masks = draw_masks(std::ssize(text), seed + i);
    texts.push_back(masked_text(corpus, text, masks, mask_id, std::ssize(text)));
    texts.back().number = static_cast<int64_t>(i);
  }
  return texts;
}

std::vector<MaskedText> unmasked_texts(const Corpus& corpus, int64_t max_tokens) {
  std::vector<MaskedText> texts;
  for (size_t i = 0; i < corpus.texts.size(); ++i) {
    const std::span<const int32_t> words = leading_words(corpus, i, max_tokens);
    MaskedText& text = texts.emplace_back(masked_text(corpus, words, {}, 0, std::ssize(words)));
    text.number = static_cast<int64_t>(i);
    text.places.resize(words.size());
    std::iota(text.places.begin(), text.places.end(), std::ssize(corpus.prefix));
  }
  return texts;
}

std::vector<MaskedScore> score_texts(const Encoder& encoder, const RunOptions& options,
                                     const Corpus& corpus, int64_t max_tokens, uint64_t seed,
                                     bool every_layer, const Stages& stages) {
  const std::vector<MaskedText> texts = masked_texts(encoder.model(), corpus, max_tokens, seed);
  int64_t tokens = 0;
  for (const MaskedText& text : texts) {
    tokens += std::ssize(text.token_ids) - std::ssize(corpus.prefix) - std::ssize(corpus.suffix);
  }
  const int64_t layers = every_layer ? encoder.model().config().num_layers + 1 : 1;
  return score(encoder, options, texts, layers, tokens, stages, "masked texts");
}

std::vector<LengthScore> score_lengths(const Encoder& encoder, const RunOptions& options,
                                       const Corpus& corpus, int64_t trained_length, uint64_t seed,
                                       const Stages& stages) {
  const int32_t mask_id = mask_to_fill(encoder.model()).value();
  const auto special = std::ssize(corpus.prefix) + std::ssize(corpus.suffix);
  std::vector<int32_t> tokens;
  for (const std::vector<int32_t>& text : corpus.texts) {
    tokens.insert(tokens.end(), text.begin(), text.end());
  }
  std::vector<LengthScore> lengths;
  int64_t num_scored = std::ssize(tokens);  // in whole pieces of every length
  for (const double factor : {1.0, 1.5, 2.0}) {
    const auto length = static_cast<int64_t>(factor * static_cast<double>(trained_length));
    const int64_t piece = length - special;
    if (piece < 1 || piece > std::ssize(tokens)) continue;
    lengths.push_back({.factor = factor, .length = length, .overflow = {}, .score = {}});
    num_scored = std::min(num_scored, std::ssize(tokens) / piece * piece);
  }
  if (lengths.empty()) return {};

  const std::vector<int64_t> masks = draw_masks(std::ssize(tokens), seed);
  const std::optional<int64_t> limit = encoder.model().max_tokens(options.positions);
  std::vector<LengthScore> scores;
  for (LengthScore& length : lengths) {
    const std::vector<MaskedText> texts =
        cut(corpus, tokens, masks, length.length - special, mask_id, num_scored);
    std::vector<std::optional<Overflow>> policies = {std::nullopt};
    if (limit && length.length > *limit) {
      policies = {Overflow::kClamp, Overflow::kInterpolate, Overflow::kWindow};
    }
    for (const std::optional<Overflow> policy : policies) {
      RunOptions run = options;
      run.overflow = policy.value_or(Overflow::kError);
      length.overflow = policy;
      length.score = score(encoder, run, texts, 1, num_scored, stages, "longer than trained")[0];
      scores.push_back(length);
    }
  }
  return scores;
}

}  // namespace phasor::internal
