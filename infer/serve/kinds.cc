// Sparse vectors, and vectors and states of tokens.
#include <fmt/format.h>

#include <utility>

#include "infer/serve/exchange.h"

namespace infer {
namespace {

/// How texts are run that are queries or documents.
RunKind retrieval_kind(const Fields& fields, RunKind::Task task, const phasor::TextConfig& text) {
  RunKind kind = run_kind(fields, task);
  kind.is_query = fields.text("prompt_name", "") == "query";
  kind.prompt =
      kind.is_query ? text.prompt_for(true) : prompt_of(fields, text, text.prompt_for(false));
  return kind;
}

/// Bytes of n rows as JSON, and a comma.
int64_t row_bytes(int64_t n, int64_t width) { return n * (width * kNumberBytes + 3) + 3; }

void write_rows(JsonWriter& json, std::span<const float> values, size_t width) {
  json.array([&] {
    for (size_t i = 0; i < values.size(); i += width) json.value(values.subspan(i, width));
  });
}

int64_t sparse_bytes(const TextResult& vector) {
  constexpr int64_t kItemBytes = 24;  // {"index":250001,"value":},
  return std::ssize(vector.indices) * (kItemBytes + kNumberBytes) + 3;
}

void write_sparse(JsonWriter& json, const TextResult& vector) {
  json.array([&] {
    for (size_t i = 0; i < vector.indices.size(); ++i)
      json.object("index", vector.indices[i], "value", vector.values[i]);
  });
}

}  // namespace

void Exchange::embed_all() {
  const Fields fields(body());
  ModelQueue& queue = model(fields);
  Work work{.kind = run_kind(fields, Task::kStates),
            .texts = fields.texts("inputs", service.options_.most_texts())};
  fields.refuse_others();
  run_rows(queue, std::move(work), queue.model().config().d_model);
}

void Exchange::run_rows(ModelQueue& queue, Work work, int64_t width) {
  int64_t bytes = 0;
  for (size_t i = 0; i < work.texts.size(); ++i)
    bytes += row_bytes(queue.most_tokens(work, i), width);
  run(queue, std::move(work), bytes, [this, width](const std::vector<TextResult>& results) {
    answer_each(
        results,
        [width](const auto& each) { return row_bytes(std::ssize(each.values) / width, width); },
        [width](auto& json, const auto& each) { write_rows(json, each.values, width); });
  });
}

void Exchange::embed_sparse() {
  const Fields fields(body());
  ModelQueue& queue = model(fields, &ModelQueue::makes_sparse_vectors);
  if (!queue.makes_sparse_vectors())
    invalid(fmt::format("the model {} makes no sparse vectors", queue.name()));
  Work work{.kind = retrieval_kind(fields, Task::kSparse, queue.model().text()),
            .texts = fields.texts("inputs", service.options_.most_texts())};
  fields.refuse_others();
  // How long the answer will be is seen from the weights.
  run(queue, std::move(work), 0, [this](const std::vector<TextResult>& results) {
    answer_each(results, sparse_bytes, write_sparse);
  });
}

void Exchange::embed_tokens(const Fields& fields) {
  ModelQueue& queue = model(fields, &ModelQueue::makes_token_vectors);
  if (!queue.makes_token_vectors())
    invalid(fmt::format("the model {} makes no vector of each token", queue.name()));
  Work work{.kind = retrieval_kind(fields, Task::kTokens, queue.model().text()),
            .texts = fields.texts("inputs", service.options_.most_texts())};
  fields.refuse_others();
  run_rows(queue, std::move(work), queue.model().token_vectors().width());
}

}  // namespace infer
