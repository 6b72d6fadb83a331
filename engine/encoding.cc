#include "engine/encoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "files/refuse.h"

namespace phasor {
namespace internal {
namespace {

// The rows of all segments, end to end, to one row for each token.
void mean_over_windows(const std::vector<Segment>& segments, std::span<const int64_t> offsets,
                       std::span<const float> rows, int64_t width, std::span<float> means) {
  std::vector<int32_t> windows(offsets.back());  // windows that computed the token so far
  const float* from = rows.data();
  std::fill(means.begin(), means.end(), 0.0f);
  for (const Segment& segment : segments) {
    for (int64_t t = 0; t < segment.num_tokens(); ++t, from += width) {
      const int64_t n = offsets[segment.sequence] + segment.first_token + t;
      float* to = &means[n * width];
      const auto count = static_cast<float>(++windows[n]);
      for (int64_t c = 0; c < width; ++c) to[c] += (from[c] - to[c]) / count;  // running mean
    }
  }
}

}  // namespace

void check_index(int64_t i, int64_t count, const char* what) {
  if (i >= 0 && i < count) return;
  const std::string range = count > 0 ? fmt::format("; they are 0 to {}", count - 1) : ", or any";
  throw std::out_of_range(fmt::format("the result has no {} {}{}", what, i, range));
}

EncodingParts::EncodingParts(const std::vector<Segment>& segments, int64_t d_model,
                             std::span<float> output)
    : segments_(segments) {
  encoding_.d_model = d_model;
  auto& [width, offsets, token_ids, positions, hidden] = encoding_;
  int64_t num_rows = 0;
  for (const Segment& segment : segments) {  // a later window extends its sequence
    num_rows += segment.num_tokens();
    if (segment.first_token > 0) offsets.pop_back();
    const int64_t first = offsets.back() + segment.first_token;
    for (int64_t t = std::ssize(token_ids) - first; t < segment.num_tokens(); ++t) {
      token_ids.push_back(segment.token_ids[t]);
      positions.push_back(static_cast<float>(segment.positions[t]));
    }
    offsets.push_back(first + segment.num_tokens());
  }
  const int64_t num_tokens = offsets.back();
  if (!output.empty() && std::ssize(output) != num_tokens * d_model) {
    refuse<InvalidArgument>(
        "the memory for hidden states has {} floats; {} tokens of width {} take {}", output.size(),
        num_tokens, d_model, num_tokens * d_model);
  }
  if (output.empty()) hidden.resize(num_tokens * d_model);
  hidden_ = output.empty() ? std::span(hidden) : output;
  if (num_rows > num_tokens) window_rows_.resize(num_rows * d_model);
  rows_ = num_rows > num_tokens ? std::span(window_rows_) : hidden_;
}

Encoding EncodingParts::finish() {
  if (!window_rows_.empty())
    mean_over_windows(segments_, encoding_.offsets, rows_, encoding_.d_model, hidden_);
  return std::move(encoding_);
}

}  // namespace internal

Encoding::Sequence Encoding::operator[](int64_t i) const& {
  internal::check_index(i, size(), "sequence");
  const int64_t first = offsets[i], count = offsets[i + 1] - first;
  const auto rows = [&](const auto& all, int64_t width) {
    return all.empty() ? std::span(all) : std::span(all).subspan(first * width, count * width);
  };
  return {rows(token_ids, 1), rows(positions, 1), rows(hidden, d_model)};
}

}  // namespace phasor
