#include "infer/serve/tasks.h"

#include <algorithm>
#include <utility>

#include "infer/serve/queue.h"
#include "phasor/fields.h"

namespace infer {
namespace {

constexpr int64_t kResult = 2 * sizeof(float);  // of a number: in the batch and behind it
constexpr int64_t kNumber = kResult + 16;       // and its JSON

void embed(phasor::Encoder& encoder, const Batch& batch, const Task::Take& take) {
  const phasor::Vectors made = encoder.embed(batch.texts, batch.options);
  take(made.arrays(), batch.texts.size());
}

void classify(phasor::Encoder& encoder, const Batch& batch, const Task::Take& take) {
  const phasor::Classification made =
      batch.first.empty() ? encoder.classify(batch.texts, batch.options)
                          : encoder.classify(batch.first, batch.texts, batch.options);
  take(made.arrays(), batch.texts.size());
}

void label(phasor::Encoder& encoder, const Batch& batch, const Task::Take& take) {
  const phasor::Labels made = encoder.label(batch.texts, batch.options);
  take(made.arrays(), batch.texts.size());
}

/// The documents of each query. Queries and documents have lengths of their own.
void rank_by_tokens(phasor::Encoder& encoder, const Batch& batch, const Task::Take& take) {
  phasor::TextOptions options = batch.options;
  options.max_tokens = 0;
  const std::span<const std::string_view> queries = batch.first, documents = batch.texts;
  for (size_t begin = 0, end = 0; begin < documents.size(); begin = end) {
    while (end < documents.size() && queries[end] == queries[begin]) ++end;
    const phasor::Ranking made =
        encoder.rank(queries[begin], documents.subspan(begin, end - begin), options);
    take(made.arrays(), end - begin);
  }
}

void run_nothing(phasor::Encoder&, const Batch& batch, const Task::Take& take) {
  const std::vector<int64_t> num_tokens(batch.texts.size());  // which is seen later
  take({{.name = "num_tokens", .values = std::span(num_tokens)}}, num_tokens.size());
}

int64_t dense_bytes(const ModelQueue& queue, const phasor::TextOptions&, int64_t) {
  return kNumber * queue.vector_width();
}

int64_t state_bytes(const ModelQueue& queue, const phasor::TextOptions&, int64_t tokens) {
  return kNumber * tokens * queue.model().config().d_model;
}

/// Ids and weights, of which few are not 0.
int64_t sparse_bytes(const ModelQueue& queue, const phasor::TextOptions& options, int64_t tokens) {
  const phasor::SparseConfig& sparse = queue.model().sparse();
  const bool is_query = options.role == phasor::TextRole::kQuery;
  const bool of_tokens = sparse.kind == phasor::SparseConfig::Kind::kTokens ||
                         (is_query && !sparse.query_weights.empty());
  return 2 * kResult * (of_tokens ? tokens : queue.model().config().vocab_size);
}

int64_t token_side(const ModelQueue& queue, const phasor::TextOptions& options) {
  const bool is_query = options.role == phasor::TextRole::kQuery;
  const int64_t own = queue.model().token_vectors().side(is_query).max_tokens;
  return own > 0 ? own : queue.max_tokens();
}

/// Queries may be filled up.
int64_t token_bytes(const ModelQueue& queue, const phasor::TextOptions& options, int64_t tokens) {
  const phasor::TokenVectorConfig& made = queue.model().token_vectors();
  const bool fills = made.expansion && options.role == phasor::TextRole::kQuery;
  return kNumber * made.width() * std::max(tokens, fills ? made.expansion->length : 0);
}

/// {"score":0.7400000095,"label":"positive"}
int64_t score_bytes(const ModelQueue& queue, const phasor::TextOptions&, int64_t) {
  constexpr int64_t kBeside = 96;
  int64_t bytes = kBeside;  // of a rank
  if (const auto& head = queue.model().weights().classifier) {
    for (const std::string& label : head->labels)
      bytes += 2 * kResult + kBeside + std::ssize(label);
  }
  return bytes;
}

/// States, logits and spans.
int64_t label_bytes(const ModelQueue& queue, const phasor::TextOptions&, int64_t tokens) {
  constexpr int64_t kRows = 3;  // of a token: windows overlap by half, and are then averaged
  constexpr int64_t kSpan = 2 * (sizeof(phasor::LabelledSpan) + sizeof(std::string));
  const auto labels = std::ssize(queue.model().weights().token_classifier->labels);
  const int64_t numbers = kRows * queue.model().config().d_model + 4 * labels;
  return tokens * (numbers * int64_t{sizeof(float)} + kSpan);
}

int64_t no_bytes(const ModelQueue&, const phasor::TextOptions&, int64_t) { return 0; }

}  // namespace

const Tasks kTasks = {
    .embed = {.run = embed, .uses = phasor::kUseDense, .bytes = dense_bytes},
    .states = {.run = embed, .uses = phasor::kUseStates, .bytes = state_bytes},
    .sparse = {.run = embed, .uses = phasor::kUseSparse, .bytes = sparse_bytes},
    .tokens = {.run = embed,
               .uses = phasor::kUseTokens,
               .bytes = token_bytes,
               .longest = token_side},
    .classify = {.run = classify, .uses = phasor::kUseClassify, .bytes = score_bytes},
    .rank_by_tokens = {.run = rank_by_tokens,
                       .uses = phasor::kUseRank,
                       .bytes = score_bytes,
                       .longest = token_side},
    .label = {.run = label, .uses = phasor::kUseLabel, .bytes = label_bytes, .in_windows = true},
    .tokenize = {.run = run_nothing, .bytes = no_bytes},
};

}  // namespace infer
