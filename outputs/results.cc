// The arrays of results.
#include "phasor/results.h"

#include <initializer_list>

#include "engine/encoding.h"

namespace phasor {

using namespace internal;

namespace {

using Rows = ResultArray::Rows;

/// The numbers of spans [N, 2].
std::span<const int64_t> numbers_of(const std::vector<TextSpan>& spans) {
  static_assert(sizeof(TextSpan) == 2 * sizeof(int64_t) &&
                offsetof(TextSpan, end) == sizeof(int64_t));
  return {spans.empty() ? nullptr : &spans.front().begin, 2 * spans.size()};
}

void add(const TextReports& reports, std::vector<ResultArray>& arrays) {
  arrays.push_back({"num_tokens", std::span(reports.num_tokens)});
  arrays.push_back({"dropped_tokens", std::span(reports.dropped_tokens)});
  arrays.push_back({"invalid_bytes", std::span(reports.invalid_bytes)});
}

/// Of texts that have several rows each.
class ItemArrays {
 public:
  ItemArrays(std::string_view name, const std::vector<int64_t>& offsets,
             std::vector<ResultArray>& arrays)
      : offsets_(offsets), arrays_(arrays) {
    arrays_.push_back({name, offsets_, 0, Rows::kOffsets});
  }
  template <typename T>
  void add(std::string_view name, std::span<const T> values, int64_t columns = 0) {
    arrays_.push_back({name, values, columns, Rows::kItems, offsets_});
  }

 private:
  const std::span<const int64_t> offsets_;
  std::vector<ResultArray>& arrays_;
};

struct TokenNames {
  std::string_view offsets, vectors, ids, spans;
};

void add(const TokenRows& rows, const TokenNames& names, std::vector<ResultArray>& arrays) {
  if (rows.width == 0) return;
  ItemArrays items(names.offsets, rows.offsets, arrays);
  items.add(names.vectors, std::span(rows.values), rows.width);
  items.add(names.ids, std::span(rows.ids));
  if (rows.spans.size() == rows.ids.size()) items.add(names.spans, numbers_of(rows.spans), 2);
}

template <typename T>
std::span<const T> rows_of(const std::vector<T>& all, const std::vector<int64_t>& offsets,
                           int64_t i, int64_t width = 1) {
  check_index(i, std::ssize(offsets) - 1, "text");
  return std::span(all).subspan(offsets[i] * width, (offsets[i + 1] - offsets[i]) * width);
}

}  // namespace

TextReport TextReports::operator[](int64_t i) const {
  check_index(i, size(), "text");
  return {num_tokens[i], dropped_tokens[i], invalid_bytes[i]};
}

SparseVector SparseRows::operator[](int64_t i) const& {
  return {rows_of(indices, offsets, i), rows_of(values, offsets, i)};
}

std::span<const float> TokenRows::operator[](int64_t i) const& {
  return rows_of(values, offsets, i, width);
}

std::span<const float> Vectors::operator[](int64_t i) const& {
  check_index(i, width > 0 ? std::ssize(dense) / width : 0, "vector");
  return std::span(dense).subspan(i * width, width);
}

Classification::Row Classification::operator[](int64_t i) const& {
  check_index(i, size(), "text");
  const auto count = std::ssize(labels);
  return {std::span(logits).subspan(i * count, count),
          std::span(probabilities).subspan(i * count, count)};
}

std::vector<LabelledSpan> Labels::operator[](int64_t i) const& {
  check_index(i, size(), "text");
  std::vector<LabelledSpan> all;
  for (int64_t k = offsets[i]; k < offsets[i + 1]; ++k)
    all.push_back({labels[k], scores[k], spans[k], tokens[k]});
  return all;
}

std::vector<ResultArray> Vectors::arrays() const {
  std::vector<ResultArray> arrays;
  if (width > 0 && std::ssize(dense) == size() * width)
    arrays.push_back({"dense", std::span(dense), width});
  if (sparse.width > 0) {
    ItemArrays items("sparse_offsets", sparse.offsets, arrays);
    items.add("sparse_indices", std::span(sparse.indices));
    items.add("sparse_values", std::span(sparse.values));
  }
  add(tokens, {"token_offsets", "token_vectors", "token_ids", "token_spans"}, arrays);
  add(states, {"state_offsets", "state_vectors", "state_ids", "state_spans"}, arrays);
  add(reports, arrays);
  return arrays;
}

std::vector<ResultArray> Classification::arrays() const {
  const auto count = std::ssize(labels);
  std::vector<ResultArray> arrays = {{"labels", std::span(labels), 0, Rows::kCall},
                                     {"logits", std::span(logits), count},
                                     {"probabilities", std::span(probabilities), count}};
  add(reports, arrays);
  return arrays;
}

std::vector<ResultArray> Labels::arrays() const {
  std::vector<ResultArray> arrays;
  ItemArrays items("offsets", offsets, arrays);
  items.add("labels", std::span(labels));
  items.add("scores", std::span(scores));
  items.add("spans", numbers_of(spans), 2);
  items.add("tokens", numbers_of(tokens), 2);
  add(reports, arrays);
  return arrays;
}

std::vector<ResultArray> Ranking::arrays() const {
  std::vector<ResultArray> arrays = {{"order", std::span(order), 0, Rows::kCall},
                                     {"logits", std::span(logits)},
                                     {"scores", std::span(scores)}};
  add(reports, arrays);
  return arrays;
}

}  // namespace phasor
