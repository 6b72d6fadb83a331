// Sparse vectors, and vectors and states of tokens.
#include <utility>

#include "infer/serve/exchange.h"

namespace infer {
namespace {

/// Bytes of n rows as JSON, and a comma.
int64_t row_bytes(int64_t n, int64_t width) { return n * (width * kNumberBytes + 3) + 3; }

void write_rows(JsonWriter& json, std::span<const float> values, size_t width) {
  json.array([&] {
    for (size_t i = 0; i < values.size(); i += width) json.value(values.subspan(i, width));
  });
}

}  // namespace

void Exchange::embed_all() {
  const Fields fields(body());
  ModelQueue& queue = model(fields);
  Work work = work_of(fields, kTasks.states);
  work.options.prompt = "";
  run_rows(queue, std::move(work), "state_vectors", queue.model().config().d_model);
}

void Exchange::run_rows(ModelQueue& queue, Work work, const char* part, int64_t width) {
  int64_t bytes = 0;
  for (size_t i = 0; i < work.texts.size(); ++i)
    bytes += row_bytes(queue.most_tokens(work, i), width);
  run(queue, std::move(work), bytes, [this, part, width](const Columns& results) {
    answer_each(
        results,
        [&](int64_t i) {
          return row_bytes(std::ssize(results.row<float>(part, i)) / width, width);
        },
        [&](JsonWriter& json, int64_t i) { write_rows(json, results.row<float>(part, i), width); });
  });
}

void Exchange::embed_sparse() {
  const Fields fields(body());
  ModelQueue& queue = model(fields, &ModelQueue::makes_sparse_vectors, "makes no sparse vectors");
  // How long the answer will be is seen from the weights.
  run(queue, work_of(fields, kTasks.sparse), 0, [this](const Columns& results) {
    const auto bytes_of = [&](int64_t i) {
      constexpr int64_t kItemBytes = 24;  // {"index":250001,"value":},
      return std::ssize(results.row<int32_t>("sparse_indices", i)) * (kItemBytes + kNumberBytes) +
             3;
    };
    answer_each(results, bytes_of, [&](JsonWriter& json, int64_t i) {
      const auto indices = results.row<int32_t>("sparse_indices", i);
      const auto values = results.row<float>("sparse_values", i);
      json.array([&] {
        for (size_t k = 0; k < indices.size(); ++k)
          json.object("index", indices[k], "value", values[k]);
      });
    });
  });
}

void Exchange::embed_tokens() {
  const Fields fields(body());
  fields.one_of("kind", {"tokens", "dense"});
  ModelQueue& queue =
      model(fields, &ModelQueue::makes_token_vectors, "makes no vector of each token");
  run_rows(queue, work_of(fields, kTasks.tokens), "token_vectors",
           queue.model().token_vectors().width());
}

}  // namespace infer
