// What a server's engines do with texts, and what it takes.
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

constexpr int64_t kResultBytes = 2 * sizeof(float);  // of a number: in the batch and behind it
constexpr int64_t kNumberBytes = kResultBytes + 16;  // and in the answer: "-1.1754944e-38,"

/// A byte is a token at most, but for odd characters.
int64_t most_tokens(const ModelQueue& queue, const Work& work, size_t text) {
  return std::min(work.bytes(text) + kSpecialTokens, longest(queue, work));
}

int64_t dense_bytes(const ModelQueue& queue, const Work&, size_t) {
  return queue.vector_width() * kNumberBytes;
}

int64_t state_bytes(const ModelQueue& queue, const Work& work, size_t text) {
  return most_tokens(queue, work, text) * queue.model().config().d_model * kNumberBytes;
}

/// Ids and weights, of which few are not 0.
int64_t sparse_bytes(const ModelQueue& queue, const Work& work, size_t text) {
  const phasor::SparseConfig& sparse = queue.model().sparse();
  const bool is_query = work.options.role == phasor::TextRole::kQuery;
  const bool of_tokens = sparse.kind == phasor::SparseConfig::Kind::kTokens ||
                         (is_query && !sparse.query_weights.empty());
  return 2 * kResultBytes *
         (of_tokens ? most_tokens(queue, work, text) : queue.model().config().vocab_size);
}

/// Queries may be filled up.
int64_t token_bytes_of(const ModelQueue& queue, const Work& work, size_t text) {
  const phasor::TokenVectorConfig& config = queue.model().token_vectors();
  const bool fills = config.expansion && work.options.role == phasor::TextRole::kQuery;
  return std::max(most_tokens(queue, work, text), fills ? config.expansion->length : 0) *
         config.width() * kNumberBytes;
}

/// {"score":0.7400000095,"label":"positive"} of each label, or the score of a rank.
int64_t score_bytes(const ModelQueue& queue, const Work&, size_t) {
  constexpr int64_t kBeside = 64, kChar = 6;  // the longest escape of a byte in JSON
  int64_t bytes = kBeside;
  if (const auto& head = queue.model().weights().classifier) {
    for (const std::string& label : head->labels)
      bytes += 2 * kResultBytes + kBeside + kChar * std::ssize(label);
  }
  return bytes;
}

/// Of each token the states, of windows that overlap by half and are then averaged, its logits, and
/// a span. All of a text is run, and nothing is cut, so that normalization may make six tokens of a
/// byte (U+FDFA).
int64_t span_bytes(const ModelQueue& queue, const Work& work, size_t text) {
  constexpr int64_t kSpan = 2 * (sizeof(phasor::LabelledSpan) + sizeof(std::string));
  const int64_t numbers = 3 * queue.model().config().d_model + 4 * queue.num_labels();
  return (6 * work.bytes(text) + kSpecialTokens) * (numbers * int64_t{sizeof(float)} + kSpan);
}

int64_t no_bytes(const ModelQueue&, const Work&, size_t) { return 0; }

}  // namespace

const Tasks kTasks = {
    .embed = {embed, phasor::kUseDense, dense_bytes},
    .states = {embed, phasor::kUseStates, state_bytes},
    .sparse = {embed, phasor::kUseSparse, sparse_bytes},
    .tokens = {embed, phasor::kUseTokens, token_bytes_of},
    .classify = {classify, phasor::kUseClassify, score_bytes},
    .rank_by_tokens = {rank_by_tokens, phasor::kUseRank, score_bytes},
    .label = {label, phasor::kUseLabel, span_bytes},
    .tokenize = {run_nothing, 0, no_bytes},
};

int64_t longest(const ModelQueue& queue, const Work& work) {
  if ((work.task->uses & (phasor::kUseTokens | phasor::kUseRank)) == 0) return queue.max_tokens();
  const bool is_query = work.options.role == phasor::TextRole::kQuery;
  const int64_t own = queue.model().token_vectors().side(is_query).max_tokens;
  return own > 0 ? own : queue.max_tokens();
}

/// The engine counts tokens; here they are guessed from the bytes. The part that is cut off is
/// tokenized, too, so it counts; windows overlap by half.
int64_t about_tokens(const ModelQueue& queue, const Work& work, size_t text) {
  const int64_t bytes = work.bytes(text), tokens = bytes / 3 + 2, most = queue.max_tokens();
  if (work.task->uses == 0) return bytes / 64 + 1;
  if (work.task->uses == phasor::kUseLabel) return tokens > most ? 2 * tokens : tokens;
  return std::max(std::min(tokens, most), bytes / 64);
}

int64_t most_bytes(const ModelQueue& queue, const Work& work) {
  constexpr int64_t kText = 256;  // beside its values, in the result and in the answer
  int64_t bytes = work.bytes();
  for (size_t i = 0; i < work.texts.size(); ++i) bytes += kText + work.task->bytes(queue, work, i);
  return bytes;
}

}  // namespace infer
