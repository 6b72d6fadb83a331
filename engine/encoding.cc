// Putting the result together: windows averaged where they overlap, and the pooled vectors.

#include <utility>

#include "engine/batch.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"

namespace phasor {

namespace {

// The rows of all segments, end to end, to one row for each token.
std::vector<float> mean_over_windows(const std::vector<Segment>& segments,
                                     const std::vector<int64_t>& offsets,
                                     const std::vector<float>& rows, int64_t width) {
  std::vector<float> means(offsets.back() * width);
  std::vector<int32_t> windows(offsets.back());  // that have computed the token so far
  const float* from = rows.data();
  for (const Segment& segment : segments) {
    for (int64_t t = 0; t < segment.num_tokens(); ++t, from += width) {
      const int64_t n = offsets[segment.sequence] + segment.first_token + t;
      float* to = &means[n * width];
      const auto count = static_cast<float>(++windows[n]);
      for (int64_t c = 0; c < width; ++c) to[c] += (from[c] - to[c]) / count;  // running mean
    }
  }
  return means;
}

}  // namespace

Encoding::Encoding(const std::vector<Segment>& segments, std::vector<float> hidden, int64_t d_model,
                   const Pooling* pooling)
    : d_model_(d_model) {
  for (const Segment& segment : segments) {  // a later window extends its sequence
    if (segment.first_token > 0) offsets_.pop_back();
    const int64_t first = offsets_.back() + segment.first_token;
    for (int64_t t = std::ssize(token_ids_) - first; t < segment.num_tokens(); ++t) {
      token_ids_.push_back(segment.token_ids[t]);
      positions_.push_back(static_cast<float>(segment.positions[t]));
    }
    offsets_.push_back(first + segment.num_tokens());
  }
  const bool has_windows = std::ssize(hidden) > offsets_.back() * d_model;
  hidden_ =
      has_windows ? mean_over_windows(segments, offsets_, hidden, d_model) : std::move(hidden);
  if (pooling == nullptr) return;
  embedding_width_ = pooling->width(d_model);
  for (int64_t i = 0; i < num_sequences(); ++i) {
    const std::vector<float> pooled = pool(this->hidden(i), d_model, *pooling);
    embeddings_.insert(embeddings_.end(), pooled.begin(), pooled.end());
  }
}

std::span<const float> Encoding::embedding(int64_t i) const {
  if (embedding_width_ == 0) {
    throw ModelError(
        "the model's files do not say how to pool (Model::sentence says why); give "
        "RunOptions::pooling");
  }
  const auto width = static_cast<size_t>(embedding_width_);
  return {&embeddings_.at(i * width), width};
}

}  // namespace phasor
