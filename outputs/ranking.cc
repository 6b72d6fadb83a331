// Ranking by a head's logits or by vectors.

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "files/refuse.h"
#include "phasor/encoder.h"

namespace phasor {

using namespace internal;

namespace {

std::vector<int64_t> best_first(std::span<const float> keys) {
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](int64_t i) { return keys[i]; });
  return order;
}

void check_one_label(const ClassifierHead& head) {
  if (head.labels.size() == 1) return;
  refuse<ModelError>(
      "relevance needs a model with one label, and this one has {} labels; call classify()",
      head.labels.size());
}

/// Of the documents whose `results` these are.
template <typename Results>
Ranking ranking(std::span<const float> keys, std::vector<float> scores, const Results& results) {
  Ranking made = {.order = best_first(keys), .scores = std::move(scores), .reports = {}};
  for (int64_t i = 0; i < results.size(); ++i) made.reports.push_back(results.report(i));
  return made;
}

}  // namespace

std::vector<float> Encoder::score(const Texts& first, const Texts& second,
                                  const ClassifyOptions& options) {
  const auto& head = model().weights().classifier;
  if (head) check_one_label(*head);
  const Classification result = classify(first, second, options);  // refuses a model without a head
  return {result.logits().begin(), result.logits().end()};
}

Ranking Encoder::rank(std::string_view query, const Texts& documents,
                      const ClassifyOptions& options) {
  if (const auto& head = model().weights().classifier) {
    check_one_label(*head);
    const Classification result = classify(query, documents, options);
    const auto scores = result.probabilities();
    return ranking(result.logits(), {scores.begin(), scores.end()}, result);
  }
  if (!model().has_sentence() && model().has_token_vectors()) {
    RetrievalOptions how = {.is_query = true,
                            .max_tokens = options.max_tokens,
                            .overflow = options.overflow,
                            .stop = options.stop,
                            .parse_special = options.parse_special,
                            .truncation_side = options.truncation_side};
    const TokenVectors one = embed_tokens(query, how);
    how.is_query = false;
    how.progress = options.progress;
    const TokenVectors vectors = embed_tokens(documents, how);
    const std::vector<float> scores = similarities(one[0], vectors);
    return ranking(scores, scores, vectors);
  }
  const SentenceConfig& sentence = model().sentence();
  EmbedOptions how = {.prompt = sentence.prompt_for(true),
                      .max_tokens = options.max_tokens,
                      .overflow = options.overflow,
                      .stop = options.stop,
                      .parse_special = options.parse_special,
                      .truncation_side = options.truncation_side};
  const Embeddings one = embed(query, how);
  how.prompt = sentence.prompt_for(false);
  how.progress = options.progress;
  const Embeddings vectors = embed(documents, how);
  std::vector<float> scores;
  for (int64_t i = 0; i < vectors.size(); ++i)
    scores.push_back(static_cast<float>(similarity(one[0], vectors[i], sentence.similarity)));
  return ranking(scores, scores, vectors);
}

}  // namespace phasor
