#include "infer/commands/embed/kinds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <variant>
#include <vector>

#include "files/json_writer.h"
#include "infer/cli/save.h"
#include "infer/matrix.h"

namespace infer {
namespace {

using phasor::internal::JsonWriter;

std::string piece_of(const phasor::Tokenizer& tokenizer, int32_t id) {
  return id < tokenizer.vocab_size() ? tokenizer.piece(id) : "";
}

/// The largest weights first.
void write_json(const phasor::SparseVector& vector, const phasor::Tokenizer& tokenizer,
                JsonWriter& json) {
  json.array(best_first(vector.values), [&](size_t w) {
    json.object("index", vector.indices[w], "value", vector.values[w], "word",
                piece_of(tokenizer, vector.indices[w]));
  });
}

void write_json(const phasor::TokenRows& rows, int64_t i, const phasor::Tokenizer& tokenizer,
                JsonWriter& json) {
  json.array([&] {
    for (int64_t t = rows.offsets[i]; t < rows.offsets[i + 1]; ++t) {
      json.object([&] {
        json.member("token", piece_of(tokenizer, rows.ids[t]));
        if (!rows.spans.empty())
          json.member("start", rows.spans[t].begin, "stop", rows.spans[t].end);
        json.member("vector", std::span(rows.values).subspan(t * rows.width, rows.width));
      });
    }
  });
}

SavedTensor tensor_of(const phasor::ResultArray& array) {
  return std::visit(
      [&](auto values) -> SavedTensor {
        if constexpr (std::is_same_v<decltype(values), std::span<const std::string>>) {
          throw std::logic_error("a tensor of strings");
        } else {
          std::vector<int64_t> shape = {std::ssize(values)};
          if (array.columns > 0) shape = {std::ssize(values) / array.columns, array.columns};
          return {std::string(array.name), std::move(shape), values};
        }
      },
      array.values);
}

}  // namespace

std::string description(const Embedder& embedder) {
  const phasor::Model& model = *embedder.model;
  const phasor::TextOptions& options = embedder.options;
  std::vector<std::string> kinds;
  if (embedder.makes(phasor::kUseDense)) {
    const std::string source = options.pooling.empty() ? model.sentence().source : "--pooling";
    kinds.push_back(
        fmt::format("sentence vectors: {} ({})", to_string(embedder.encoder.pooling(options)),
                    source.empty() ? "the default: no sentence-transformers files" : source));
  }
  if (embedder.makes(phasor::kUseSparse)) {
    const bool looks_up =
        options.role == phasor::TextRole::kQuery && !model.sparse().query_weights.empty();
    kinds.push_back(fmt::format("sparse vectors: {}{}", model.sparse().source,
                                looks_up ? ", queries looked up" : ""));
  }
  if (embedder.makes(phasor::kUseTokens))
    kinds.push_back(fmt::format("token vectors of width {}: {}", model.token_vectors().width(),
                                model.token_vectors().source));
  if (embedder.makes(phasor::kUseStates)) kinds.emplace_back("the last state of each token");
  return fmt::format("{}", fmt::join(kinds, "; "));
}

void VectorCounts::add(const phasor::Vectors& vectors) {
  lines += vectors.size();
  weights += std::ssize(vectors.sparse.values);
  tokens += std::ssize(vectors.tokens.ids);
  states += std::ssize(vectors.states.ids);
}

std::string VectorCounts::summary(const Embedder& embedder) const {
  const auto mean = [&](int64_t count) { return lines > 0 ? (count + lines / 2) / lines : 0; };
  std::vector<std::string> kinds;
  if (embedder.makes(phasor::kUseDense))
    kinds.push_back(fmt::format("{} numbers", embedder.encoder.embedding_width(embedder.options)));
  if (embedder.makes(phasor::kUseSparse))
    kinds.push_back(
        fmt::format("{} of {} weights", mean(weights), embedder.model->config().vocab_size));
  if (embedder.makes(phasor::kUseTokens)) kinds.push_back(fmt::format("{} vectors", mean(tokens)));
  if (embedder.makes(phasor::kUseStates)) kinds.push_back(fmt::format("{} states", mean(states)));
  return fmt::format("{} each", fmt::join(kinds, ", "));
}

int64_t bytes_of_line(const Embedder& embedder) {
  constexpr int64_t kTokens = 32;
  int64_t numbers = 0;
  if (embedder.makes(phasor::kUseDense))
    numbers += embedder.encoder.embedding_width(embedder.options);
  if (embedder.makes(phasor::kUseSparse)) numbers += 1024;
  if (embedder.makes(phasor::kUseTokens))
    numbers += kTokens * embedder.model->token_vectors().width();
  if (embedder.makes(phasor::kUseStates)) numbers += kTokens * embedder.model->config().d_model;
  return numbers * int64_t{sizeof(float)};
}

std::string to_json(const phasor::Vectors& vectors, int64_t i, int64_t line,
                    const phasor::Tokenizer& tokenizer) {
  JsonWriter json;
  json.object([&] {
    json.member("line", line);
    if (!vectors.dense.empty()) json.member("embedding", vectors[i]);
    if (vectors.sparse.width > 0) write_json(vectors.sparse[i], tokenizer, json.key("sparse"));
    if (vectors.tokens.width > 0) write_json(vectors.tokens, i, tokenizer, json.key("tokens"));
    if (vectors.states.width > 0) write_json(vectors.states, i, tokenizer, json.key("states"));
  });
  return json.take() + "\n";
}

void save_vectors(const std::string& file, const Columns& columns, const Embedder& embedder) {
  std::vector<SavedTensor> tensors;
  const std::vector<phasor::ResultArray> arrays = columns.arrays();
  std::array<int64_t, 2> shape = {0, embedder.model->config().vocab_size};
  for (const phasor::ResultArray& array : arrays) {
    tensors.push_back(tensor_of(array));
    if (array.name == "sparse_offsets") shape[0] = tensors.back().shape[0] - 1;
  }
  if (embedder.makes(phasor::kUseSparse))
    tensors.push_back({"sparse_shape", {2}, std::span<const int64_t>(shape)});
  save("-o", file, tensors, embedder.metadata());
}

}  // namespace infer
