// Sparse vectors, and vectors and states of tokens.
#include <fmt/format.h>

#include <utility>

#include "infer/serve/exchange.h"

namespace infer {
namespace {

/// The prompt "query" is that of queries, which may also run otherwise.
Work retrieval(const Task& task, const Fields& fields) {
  Work work{.task = &task, .options = read_options(fields, {kAllFields, kPromptField}, task.uses)};
  if (work.options.prompt_name != "query") return work;
  work.options.prompt_name = {};
  work.options.role = phasor::TextRole::kQuery;
  return work;
}

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
  Work work{.task = &kTasks.states,
            .options = read_options(fields, {kAllFields}, kTasks.states.uses)};
  work.options.prompt = "";
  work.texts = fields.texts("inputs", service.options_.most_texts());
  fields.refuse_others();
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
  ModelQueue& queue = model(fields, &ModelQueue::makes_sparse_vectors);
  if (!queue.makes_sparse_vectors())
    invalid(fmt::format("the model {} makes no sparse vectors", queue.name()));
  Work work = retrieval(kTasks.sparse, fields);
  work.texts = fields.texts("inputs", service.options_.most_texts());
  fields.refuse_others();
  // How long the answer will be is seen from the weights.
  run(queue, std::move(work), 0, [this](const Columns& results) {
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

void Exchange::embed_tokens(const Fields& fields) {
  ModelQueue& queue = model(fields, &ModelQueue::makes_token_vectors);
  if (!queue.makes_token_vectors())
    invalid(fmt::format("the model {} makes no vector of each token", queue.name()));
  Work work = retrieval(kTasks.tokens, fields);
  work.texts = fields.texts("inputs", service.options_.most_texts());
  fields.refuse_others();
  run_rows(queue, std::move(work), "token_vectors", queue.model().token_vectors().width());
}

}  // namespace infer
