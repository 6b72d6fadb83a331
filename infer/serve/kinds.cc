// Sparse vectors, vectors of tokens, and all kinds that a model makes, from one run; states.
#include <fmt/format.h>

#include <utility>

#include "infer/serve/exchange.h"

namespace infer {
namespace {

/// How texts are run that are queries or documents.
RunKind retrieval_kind(const Fields& fields, phasor::VectorKinds kinds,
                       const phasor::TextConfig& text) {
  RunKind kind = run_kind(fields, RunKind::Task::kVectors);
  kind.kinds = kinds;
  kind.is_query = fields.text("prompt_name", "") == "query";
  kind.prompt =
      kind.is_query ? text.prompt_for(true) : prompt_of(fields, text, text.prompt_for(false));
  return kind;
}

/// Bytes of n rows as JSON, and a comma.
int64_t row_bytes(int64_t n, int64_t width) { return n * (width * kNumberBytes + 3) + 3; }

void append_rows(std::string& text, std::span<const float> values, int64_t width) {
  text += '[';
  for (size_t i = 0; i < values.size(); i += static_cast<size_t>(width)) {
    if (i > 0) text += ',';
    append(text, values.subspan(i, static_cast<size_t>(width)));
  }
  text += ']';
}

int64_t sparse_bytes(const phasor::SparseVector& vector) {
  constexpr int64_t kItemBytes = 24;  // {"index":250001,"value":},
  return std::ssize(vector.indices) * (kItemBytes + kNumberBytes) + 3;
}

void append_sparse(std::string& text, const phasor::SparseVector& vector) {
  text += '[';
  for (size_t i = 0; i < vector.indices.size(); ++i) {
    fmt::format_to(std::back_inserter(text), R"({}{{"index":{},"value":{}}})", i > 0 ? "," : "",
                   vector.indices[i], vector.values[i]);
  }
  text += ']';
}

}  // namespace

void Exchange::embed_all() {
  const Fields fields(body());
  ModelQueue& queue = model(fields);
  Work work{.kind = run_kind(fields, Task::kStates),
            .texts = fields.texts("inputs", service.options_.most_texts())};
  fields.refuse_others();
  const int64_t width = queue.model().config().d_model;
  int64_t bytes = 0;
  for (size_t i = 0; i < work.texts.size(); ++i)
    bytes += row_bytes(queue.most_tokens(work, i), width);
  run(queue, std::move(work), bytes, [this, width](const std::vector<TextResult>& results) {
    answer_each(
        results,
        [width](const auto& each) { return row_bytes(std::ssize(each.values) / width, width); },
        [width](auto& text, const auto& each) { append_rows(text, each.values, width); });
  });
}

void Exchange::embed_sparse() { answer_vectors(Fields(body()), {false, true, false}, false); }

void Exchange::embed_tokens() { answer_vectors(Fields(body()), {false, false, true}, false); }

void Exchange::embed_kinds() {
  const Fields fields(body());
  const std::vector<std::string> names = fields.names("kinds");
  phasor::VectorKinds kinds = {names.empty(), names.empty(), names.empty()};
  for (const std::string& name : names) {
    bool* const kind = name == "dense"    ? &kinds.dense
                       : name == "sparse" ? &kinds.sparse
                       : name == "tokens" ? &kinds.tokens
                                          : nullptr;
    if (kind == nullptr) invalid("`kinds` must be a list of \"dense\", \"sparse\" and \"tokens\"");
    *kind = true;
  }
  answer_vectors(fields, kinds, true);
}

void Exchange::answer_vectors(const Fields& fields, phasor::VectorKinds kinds, bool named) {
  ModelQueue& queue = embedder(fields, kinds);
  Work work{.kind = retrieval_kind(fields, kinds, queue.model().text()),
            .texts = fields.texts("inputs", service.options_.most_texts())};
  fields.refuse_others();
  const int64_t width = kinds.tokens ? queue.model().token_vectors().width() : 0;
  constexpr int64_t kNames = 32;  // {"dense":,"sparse":,"tokens":}
  const int64_t fixed =
      (named ? kNames : 0) + (kinds.dense ? row_bytes(1, queue.vector_width()) : 0);
  int64_t bytes = 0;  // but for sparse vectors: how long these will be is seen from the weights
  for (size_t i = 0; i < work.texts.size(); ++i)
    bytes += fixed + (kinds.tokens ? row_bytes(queue.most_tokens(work, i), width) : 0);
  const auto bytes_of = [=](const TextResult& each) {
    return fixed + sparse_bytes(each.sparse) +
           (kinds.tokens ? row_bytes(std::ssize(each.token_vectors) / width, width) : 0);
  };
  const auto append_one = [=](std::string& text, const TextResult& each) {
    const auto member = [&](const char* name) {
      if (!named) return;
      text += text.back() == '{' ? "\"" : ",\"";
      text.append(name).append("\":");
    };
    if (named) text += '{';
    if (kinds.dense) {
      member("dense");
      append(text, each.values);
    }
    if (kinds.sparse) {
      member("sparse");
      append_sparse(text, each.sparse);
    }
    if (kinds.tokens) {
      member("tokens");
      append_rows(text, each.token_vectors, width);
    }
    if (named) text += '}';
  };
  run(queue, std::move(work), bytes,
      [this, bytes_of, append_one](const std::vector<TextResult>& results) {
        answer_each(results, bytes_of, append_one);
      });
}

}  // namespace infer
