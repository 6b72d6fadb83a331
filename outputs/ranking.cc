// Ranking by a head's logits or by vectors.
#include "outputs/ranking.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "files/refuse.h"
#include "outputs/labels.h"
#include "outputs/token_rows.h"
#include "outputs/vectors.h"

namespace phasor::internal {
namespace {

Ranking ranking(std::vector<float> logits, std::vector<float> scores, TextReports reports) {
  Ranking made = {{}, std::move(logits), std::move(scores), std::move(reports)};
  made.order.resize(made.logits.size());
  std::iota(made.order.begin(), made.order.end(), 0);
  std::ranges::stable_sort(made.order, std::greater(), [&](int64_t i) { return made.logits[i]; });
  return made;
}

}  // namespace

Ranking rank(const Runner& runner, std::string_view query,
             std::span<const std::string_view> documents, const TextOptions& options) {
  const Model& model = runner.model();
  const std::span<const std::string_view> queries(&query, 1);
  if (const auto& head = model.weights().classifier) {
    if (head->labels.size() != 1) {
      refuse<ModelError>(
          "relevance needs a model with one label, and this one has {} labels; call classify()",
          head->labels.size());
    }
    Classification made = classify(runner, {queries, documents}, options);
    return ranking(std::move(made.logits), std::move(made.probabilities), std::move(made.reports));
  }
  if (options.prompt) {
    throw InvalidArgument(
        "rank() does not use prompt: the model has no classification head, and its vectors of "
        "queries and documents have prompts of their own");
  }
  const bool by_tokens = !model.has_sentence() && model.has_token_vectors();
  TextOptions how = options;
  how.kinds = {by_tokens ? VectorKind::kTokens : VectorKind::kDense};
  how.role = TextRole::kQuery;
  how.progress = {};
  const Vectors one = embed(runner, queries, how);
  how.role = TextRole::kDocument;
  how.progress = options.progress;
  Vectors made = embed(runner, documents, how);
  std::vector<float> scores;
  if (by_tokens) {
    scores = maxsim(one.tokens[0], made.tokens, model.token_vectors().mean, runner.threads());
  } else {
    for (int64_t i = 0; i < made.size(); ++i)
      scores.push_back(
          static_cast<float>(similarity(one[0], made[i], model.sentence().similarity)));
  }
  return ranking(scores, scores, std::move(made.reports));
}

}  // namespace phasor::internal
