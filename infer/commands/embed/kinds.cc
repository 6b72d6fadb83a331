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
using Rows = phasor::ResultArray::Rows;

/// The items of a text whose arrays' names begin so; those that have values, the largest first.
void write_items(const Columns& text, const std::string& name, const phasor::Tokenizer& tokenizer,
                 JsonWriter& json) {
  const auto ids = text.all<int32_t>(name + "ids"), indices = text.all<int32_t>(name + "indices");
  const auto values = text.all<float>(name + "values"), vectors = text.all<float>(name + "vectors");
  const auto spans = text.all<int64_t>(name + "spans");
  const auto piece = [&](int32_t id) {
    return id < tokenizer.vocab_size() ? tokenizer.piece(id) : "";
  };
  const size_t width = ids.empty() ? 0 : vectors.size() / ids.size();
  const std::vector<float> alike(ids.size());  // stay in order
  json.array(best_first(ids.empty() ? values : alike), [&](size_t i) {
    json.object([&] {
      if (!ids.empty()) json.member("token", piece(ids[i]));
      if (!spans.empty()) json.member("start", spans[2 * i], "stop", spans[2 * i + 1]);
      if (!vectors.empty()) json.member("vector", vectors.subspan(i * width, width));
      if (!values.empty())
        json.member("index", indices[i], "value", values[i], "word", piece(indices[i]));
    });
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
  for (const phasor::ResultArray& array : vectors.arrays())
    if (array.rows == Rows::kItems) items[std::string(array.name)] += array.offsets.back();
}

std::string VectorCounts::summary(const Embedder& embedder) const {
  const auto mean = [&](const char* array) {
    return items.contains(array) ? (items.at(array) + lines / 2) / lines : 0;
  };
  std::vector<std::string> kinds;
  if (embedder.makes(phasor::kUseDense))
    kinds.push_back(fmt::format("{} numbers", embedder.encoder.embedding_width(embedder.options)));
  if (embedder.makes(phasor::kUseSparse))
    kinds.push_back(fmt::format("{} of {} weights", mean("sparse_values"),
                                embedder.model->config().vocab_size));
  if (embedder.makes(phasor::kUseTokens))
    kinds.push_back(fmt::format("{} vectors", mean("token_ids")));
  if (embedder.makes(phasor::kUseStates))
    kinds.push_back(fmt::format("{} states", mean("state_ids")));
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
  Columns text;
  text.add(vectors.arrays(), i, 1);
  JsonWriter json;
  json.object([&] {
    json.member("line", line);
    if (!vectors.dense.empty()) json.member("embedding", vectors[i]);
    for (const phasor::ResultArray& array : text.arrays()) {
      if (array.rows != Rows::kOffsets) continue;
      const std::string stem(array.name.substr(0, array.name.rfind('_')));  // "token"
      write_items(text, stem + "_", tokenizer, json.key(stem == "sparse" ? stem : stem + "s"));
    }
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
