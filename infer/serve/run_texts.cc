// What a queue's engine does with texts, by kind.

#include "infer/serve/queue.h"
#include "phasor/errors.h"

namespace infer {
namespace {

std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }

}  // namespace

std::vector<TextResult> ModelQueue::run_texts(const RunKind& kind,
                                              const std::vector<std::string_view>& texts,
                                              const std::vector<std::string_view>& second,
                                              std::stop_token stop) {
  const phasor::Overflow overflow =
      kind.truncate ? phasor::Overflow::kTruncate : phasor::Overflow::kError;
  std::vector<TextResult> results;
  phasor::TextOptions options{.prompt = kind.prompt,
                              .max_tokens = longest(kind),
                              .overflow = overflow,
                              .stop = stop,
                              .parse_special = kind.parse_special,
                              .truncation_side = kind.side};
  if (kind.task == RunKind::Task::kTokenize) {
    results.resize(texts.size());
  } else if (kind.task == RunKind::Task::kEmbed) {
    options.normalize = kind.normalize;
    const phasor::Vectors vectors = encoder_.embed(texts, options);
    for (int64_t i = 0; i < vectors.size(); ++i)
      results.push_back({copy(vectors[i]), {}, vectors.reports.num_tokens[i]});
  } else if (kind.task == RunKind::Task::kStates || kind.task == RunKind::Task::kTokens) {
    const bool is_tokens = kind.task == RunKind::Task::kTokens;
    options.kinds = {is_tokens ? phasor::VectorKind::kTokens : phasor::VectorKind::kStates};
    if (kind.is_query) options.role = phasor::TextRole::kQuery;
    const phasor::Vectors vectors = encoder_.embed(texts, options);
    const phasor::TokenRows& rows = is_tokens ? vectors.tokens : vectors.states;
    for (int64_t i = 0; i < vectors.size(); ++i)
      results.push_back({copy(rows[i]), {}, vectors.reports.num_tokens[i]});
  } else if (kind.task == RunKind::Task::kSparse) {
    options.kinds = {phasor::VectorKind::kSparse};
    if (kind.is_query) options.role = phasor::TextRole::kQuery;
    const phasor::Vectors vectors = encoder_.embed(texts, options);
    for (int64_t i = 0; i < vectors.size(); ++i) {
      const phasor::SparseVector sparse = vectors.sparse[i];
      results.push_back({.values = copy(sparse.values),
                         .num_tokens = vectors.reports.num_tokens[i],
                         .indices = {sparse.indices.begin(), sparse.indices.end()}});
    }
  } else if (kind.task == RunKind::Task::kRerank && ranks_by_tokens()) {
    options.prompt.reset();
    options.max_tokens = 0;
    for (size_t begin = 0, end = 0; begin < texts.size(); begin = end) {  // those of each query
      while (end < texts.size() && texts[end] == texts[begin]) ++end;
      const phasor::Ranking ranking =
          encoder_.rank(texts[begin], std::span(second).subspan(begin, end - begin), options);
      for (int64_t i = 0; i < ranking.size(); ++i)
        results.push_back(
            {{ranking.scores[i]}, {ranking.scores[i]}, ranking.reports.num_tokens[i]});
    }
  } else if (kind.task == RunKind::Task::kLabel) {
    const auto labels = std::make_shared<const phasor::Labels>(
        encoder_.label(texts, {.max_tokens = max_tokens_,
                               .stop = std::move(stop),
                               .parse_special = kind.parse_special,
                               .aggregation = kind.aggregation}));
    for (int64_t i = 0; i < labels->size(); ++i)
      results.push_back({.values = {},
                         .num_tokens = labels->reports.num_tokens[i],
                         .spans = (*labels)[i],
                         .owner = labels});
  } else {
    options.prompt.reset();
    const phasor::Classification classes = second.empty()
                                               ? encoder_.classify(texts, options)
                                               : encoder_.classify(texts, second, options);
    for (int64_t i = 0; i < classes.size(); ++i) {
      const auto& [logits, probabilities] = classes[i];
      results.push_back({copy(logits), copy(probabilities), classes.reports.num_tokens[i]});
    }
  }
  return results;
}

}  // namespace infer
