// The arrays of results.
#include "outputs/results.h"

#include "engine/encoding.h"

namespace phasor {

using namespace internal;

namespace {

template <typename T>
std::span<const T> rows_of(const std::vector<T>& all, const std::vector<int64_t>& offsets,
                           int64_t i, int64_t width = 1) {
  check_index(i, std::ssize(offsets) - 1, "text");
  return std::span(all).subspan(offsets[i] * width, (offsets[i + 1] - offsets[i]) * width);
}

}  // namespace

namespace internal {

std::span<const int64_t> numbers_of(const std::vector<TextSpan>& spans) {
  static_assert(sizeof(TextSpan) == 2 * sizeof(int64_t) &&
                offsetof(TextSpan, end) == sizeof(int64_t));
  return {spans.empty() ? nullptr : &spans.front().begin, 2 * spans.size()};
}

void add_reports(const TextReports& reports, std::vector<ResultArray>& arrays) {
  arrays.push_back({"num_tokens", std::span(reports.num_tokens)});
  arrays.push_back({"dropped_tokens", std::span(reports.dropped_tokens)});
  arrays.push_back({"invalid_bytes", std::span(reports.invalid_bytes)});
}

}  // namespace internal

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

std::vector<ResultArray> Classification::arrays() const {
  const auto count = std::ssize(labels);
  std::vector<ResultArray> arrays = {{"labels", std::span(labels), 0, ResultArray::Rows::kCall},
                                     {"logits", std::span(logits), count},
                                     {"probabilities", std::span(probabilities), count}};
  add_reports(reports, arrays);
  return arrays;
}

std::vector<ResultArray> Labels::arrays() const {
  std::vector<ResultArray> arrays;
  ItemArrays items("offsets", offsets, arrays);
  items.add("labels", std::span(labels));
  items.add("scores", std::span(scores));
  items.add("spans", numbers_of(spans), 2);
  items.add("tokens", numbers_of(tokens), 2);
  add_reports(reports, arrays);
  return arrays;
}

std::vector<ResultArray> Ranking::arrays() const {
  std::vector<ResultArray> arrays = {{"order", std::span(order), 0, ResultArray::Rows::kCall},
                                     {"logits", std::span(logits)},
                                     {"scores", std::span(scores)}};
  add_reports(reports, arrays);
  return arrays;
}

}  // namespace phasor
