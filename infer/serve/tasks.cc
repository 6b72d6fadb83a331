#include "infer/serve/tasks.h"

#include <algorithm>
#include <utility>

#include "infer/serve/queue.h"
#include "phasor/fields.h"

namespace infer {
namespace {

constexpr int64_t kSpecialTokens = 5;  // round a text, and a marker

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

int64_t no_numbers(const ModelQueue&, const phasor::TextOptions&, int64_t) { return 0; }

int64_t dense_numbers(const ModelQueue& queue, const phasor::TextOptions&, int64_t) {
  return 4 * queue.vector_width();
}

int64_t state_numbers(const ModelQueue& queue, const phasor::TextOptions&, int64_t tokens) {
  return 2 * tokens * queue.model().config().d_model;
}

/// Ids and weights.
int64_t sparse_numbers(const ModelQueue& queue, const phasor::TextOptions& options,
                       int64_t tokens) {
  const phasor::SparseConfig& sparse = queue.model().sparse();
  const bool is_query = options.role == phasor::TextRole::kQuery;
  const bool of_tokens = sparse.kind == phasor::SparseConfig::Kind::kTokens ||
                         (is_query && !sparse.query_weights.empty());
  return 4 * (of_tokens ? tokens : queue.model().config().vocab_size);
}

int64_t token_numbers(const ModelQueue& queue, const phasor::TextOptions&, int64_t tokens) {
  return 2 * tokens * queue.model().token_vectors().width();
}

int64_t logit_numbers(const ModelQueue& queue, const phasor::TextOptions&, int64_t) {
  return 4 * std::max<int64_t>(1, queue.num_labels());
}

/// States, logits and spans.
int64_t label_numbers(const ModelQueue& queue, const phasor::TextOptions&, int64_t tokens) {
  constexpr int64_t kRows = 3;  // of a token: windows overlap by half, and are then averaged
  constexpr int64_t kSpan =
      2 * (sizeof(phasor::LabelledSpan) + sizeof(std::string)) / sizeof(float);
  const auto labels = std::ssize(queue.model().weights().token_classifier->labels);
  return tokens * (kRows * queue.model().config().d_model + 4 * labels + kSpan);
}

int64_t token_side(const ModelQueue& queue, const phasor::TextOptions& options) {
  const bool is_query = options.role == phasor::TextRole::kQuery;
  const int64_t own = queue.model().token_vectors().side(is_query).max_tokens;
  return own > 0 ? own : queue.max_tokens();
}

/// Queries may be filled up.
int64_t tokens_filled(const ModelQueue& queue, const phasor::TextOptions& options, int64_t bytes) {
  const auto& expansion = queue.model().token_vectors().expansion;
  const bool fills = expansion && options.role == phasor::TextRole::kQuery;
  return std::max(std::min(bytes + kSpecialTokens, token_side(queue, options)),
                  fills ? expansion->length : 0);
}

/// All of a text is run, in windows. Where nothing is cut, normalization may make six tokens of a
/// byte (U+FDFA).
int64_t tokens_in_windows(const ModelQueue&, const phasor::TextOptions&, int64_t bytes) {
  return 6 * bytes + kSpecialTokens;
}

/// Windows overlap by half.
int64_t about_tokens_in_windows(const ModelQueue& queue, int64_t bytes) {
  const int64_t tokens = bytes / 3 + 2;
  return tokens > queue.max_tokens() ? 2 * tokens : tokens;
}

int64_t about_tokens_read(const ModelQueue&, int64_t bytes) { return bytes / 64 + 1; }

/// The token vectors of a query and of the documents that run with it.
int64_t ranked_numbers(const ModelQueue& queue, const Work& work) {
  const auto& expansion = queue.model().token_vectors().expansion;
  const int64_t query = std::max(token_side(queue, {.role = phasor::TextRole::kQuery}),
                                 expansion ? expansion->length : 0);
  const int64_t document = token_side(queue, {});
  int64_t tokens = query;
  for (size_t i = 0; i < work.texts.size(); ++i) tokens += std::min(work.bytes(i), document);
  tokens = std::min(tokens, queue.max_batch_tokens() + query + document);
  return 2 * tokens * queue.model().token_vectors().width();
}

}  // namespace

/// A byte is a token at most.
int64_t tokens_cut(const ModelQueue& queue, const phasor::TextOptions&, int64_t bytes) {
  return std::min(bytes + kSpecialTokens, queue.max_tokens());
}

/// The part that is cut off is tokenized, too, so it counts.
int64_t about_tokens_cut(const ModelQueue& queue, int64_t bytes) {
  return std::max(std::min(bytes / 3 + 2, queue.max_tokens()), bytes / 64);
}

const Tasks kTasks = {
    .embed = {.run = embed, .uses = phasor::kUseDense, .numbers = dense_numbers},
    .states = {.run = embed, .uses = phasor::kUseStates, .numbers = state_numbers},
    .sparse = {.run = embed, .uses = phasor::kUseSparse, .numbers = sparse_numbers},
    .tokens = {.run = embed,
               .uses = phasor::kUseTokens,
               .numbers = token_numbers,
               .longest = token_side,
               .most_tokens = tokens_filled},
    .classify = {.run = classify, .uses = phasor::kUseClassify, .numbers = logit_numbers},
    .rank_by_tokens = {.run = rank_by_tokens,
                       .uses = phasor::kUseRank,
                       .numbers = logit_numbers,
                       .longest = token_side,
                       .beside = ranked_numbers},
    .label = {.run = label,
              .uses = phasor::kUseLabel,
              .numbers = label_numbers,
              .most_tokens = tokens_in_windows,
              .about_tokens = about_tokens_in_windows},
    .tokenize = {.run = run_nothing, .numbers = no_numbers, .about_tokens = about_tokens_read},
};

}  // namespace infer
