// Sparse vectors, and vectors and states of tokens.
#include <utility>

#include "infer/serve/exchange.h"

namespace infer {
namespace {

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
  run(queue, std::move(work), [this, part, width](const Columns& results) {
    answer_each(
        [&](JsonWriter& json, int64_t i) { write_rows(json, results.row<float>(part, i), width); });
  });
}

void Exchange::embed_sparse() {
  const Fields fields(body());
  ModelQueue& queue = model(fields, &ModelQueue::makes_sparse_vectors, "makes no sparse vectors");
  run(queue, work_of(fields, kTasks.sparse), [this](const Columns& results) {
    // How long the answer will be is seen from the weights.
    constexpr int64_t kItemBytes = 40;  // {"index":250001,"value":-1.1754944e-38},
    const auto weights = std::ssize(results.all<int32_t>("sparse_indices"));
    take(results.bytes() + weights * kItemBytes + 3 * texts);
    answer_each([&](JsonWriter& json, int64_t i) {
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
