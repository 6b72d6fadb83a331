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
    : segments_(segments), data_(std::make_shared<EncodingData>()) {
  EncodingData& data = *data_;
  data.d_model = d_model;
  int64_t num_rows = 0;
  for (const Segment& segment : segments) {  // a later window extends its sequence
    num_rows += segment.num_tokens();
    if (segment.first_token > 0) data.offsets.pop_back();
    const int64_t first = data.offsets.back() + segment.first_token;
    for (int64_t t = std::ssize(data.token_ids) - first; t < segment.num_tokens(); ++t) {
      data.token_ids.push_back(segment.token_ids[t]);
      data.positions.push_back(static_cast<float>(segment.positions[t]));
    }
    data.offsets.push_back(first + segment.num_tokens());
  }
  const int64_t num_tokens = data.offsets.back();
  if (!output.empty() && std::ssize(output) != num_tokens * d_model) {
    refuse<InvalidArgument>(
        "the memory for hidden states has {} floats; {} tokens of width {} take {}", output.size(),
        num_tokens, d_model, num_tokens * d_model);
  }
  if (output.empty()) data.own_hidden.resize(num_tokens * d_model);
  data.hidden = output.empty() ? std::span(data.own_hidden) : output;
  if (num_rows > num_tokens) window_rows_.resize(num_rows * d_model);
  rows_ = num_rows > num_tokens ? std::span(window_rows_) : data.hidden;
}

std::shared_ptr<const EncodingData> EncodingParts::finish(const std::optional<Pooling>& pooling,
                                                          int64_t prompt_tokens,
                                                          const Threads& threads) {
  EncodingData& data = *data_;
  if (!window_rows_.empty()) {
    mean_over_windows(segments_, data.offsets, rows_, data.d_model, data.hidden);
  }
  if (!pooling) return data_;
  data.embedding_width = pooling->width(data.d_model);
  std::vector<std::vector<float>> pooled(data.offsets.size() - 1);
  const int64_t mean_values = std::ssize(data.hidden) / std::ssize(pooled);
  threads.run_rows(std::ssize(pooled), mean_values, [&](int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i) {
      const int64_t begin = data.offsets[i] * data.d_model;
      const int64_t end = data.offsets[i + 1] * data.d_model;
      pooled[i] =
          pool(data.hidden.subspan(begin, end - begin), data.d_model, *pooling, prompt_tokens);
    }
  });
  data.embeddings.reserve(pooled.size() * pooled.front().size());
  for (std::vector<float>& vector : pooled) {
    data.embeddings.insert(data.embeddings.end(), vector.begin(), vector.end());
    vector = {};
  }
  return data_;
}

}  // namespace internal

Encoding::Encoding(std::shared_ptr<const internal::EncodingData> data) : data_(std::move(data)) {}

int64_t Encoding::num_sequences() const { return std::ssize(data_->offsets) - 1; }
std::span<const int64_t> Encoding::offsets() const& { return data_->offsets; }
std::span<const int32_t> Encoding::token_ids() const& { return data_->token_ids; }
std::span<const float> Encoding::positions() const& { return data_->positions; }
std::span<const float> Encoding::hidden() const& { return data_->hidden; }
std::span<const float> Encoding::embeddings() const& {
  if (data_->embedding_width == 0) {
    throw InvalidArgument(
        "nothing was pooled: give RunOptions::pooling, or make sentence vectors with embed()");
  }
  return data_->embeddings;
}

int64_t Encoding::num_tokens(int64_t i) const {
  internal::check_index(i, num_sequences(), "sequence");
  return data_->offsets[i + 1] - data_->offsets[i];
}
std::span<const int32_t> Encoding::token_ids(int64_t i) const& {
  const int64_t count = num_tokens(i);
  return token_ids().subspan(data_->offsets[i], count);
}
std::span<const float> Encoding::positions(int64_t i) const& {
  const int64_t count = num_tokens(i);
  return positions().subspan(data_->offsets[i], count);
}
std::span<const float> Encoding::hidden(int64_t i) const& {
  const int64_t count = num_tokens(i);
  return hidden().subspan(data_->offsets[i] * data_->d_model, count * data_->d_model);
}
std::span<const float> Encoding::embedding(int64_t i) const& {
  num_tokens(i);
  return embeddings().subspan(i * data_->embedding_width, data_->embedding_width);
}

}  // namespace phasor
