// Putting the result together: windows averaged where they overlap, and the pooled vectors.

#include "engine/batch.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"

namespace phasor {

Encoding::Encoding(const std::vector<Segment>& segments, std::span<const float> hidden,
                   int64_t d_model, const Pooling* pooling)
    : d_model_(d_model) {
  for (const Segment& segment : segments) {  // a later window extends its sequence
    if (segment.first_token > 0) offsets_.pop_back();
    offsets_.push_back(offsets_.back() + segment.first_token + segment.num_tokens());
  }
  const int64_t num_tokens = offsets_.back();
  token_ids_.resize(num_tokens);
  positions_.resize(num_tokens);
  hidden_.resize(num_tokens * d_model);
  std::vector<int32_t> windows(num_tokens);  // that have computed the token so far
  const float* from = hidden.data();
  for (const Segment& segment : segments) {
    for (int64_t t = 0; t < segment.num_tokens(); ++t, from += d_model) {
      const int64_t n = offsets_[segment.sequence] + segment.first_token + t;
      float* to = &hidden_[n * d_model];
      const auto count = static_cast<float>(++windows[n]);
      for (int64_t c = 0; c < d_model; ++c) to[c] += (from[c] - to[c]) / count;  // running mean
      if (windows[n] > 1) continue;
      token_ids_[n] = segment.token_ids[t];
      positions_[n] = static_cast<float>(segment.positions[t]);
    }
  }
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
