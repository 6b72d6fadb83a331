// Attention as three primitives over strided views: no head is ever copied.

#include "engine/attention.h"

#include <algorithm>

namespace phasor {
namespace {

// [T, H, D] seen as [1, H, T, D]. Four dimensions, since with three oneDNN falls back to a slow
// matmul.
onednn::Desc heads(int64_t num_tokens, int64_t num_heads, int64_t head_dim) {
  const int64_t row = num_heads * head_dim;
  return onednn::strided({1, num_heads, num_tokens, head_dim},
                         {num_tokens * row, head_dim, row, 1});
}

onednn::Desc transposed_heads(int64_t num_tokens, int64_t num_heads, int64_t head_dim) {
  const int64_t row = num_heads * head_dim;
  return onednn::strided({1, num_heads, head_dim, num_tokens},
                         {num_tokens * row, head_dim, 1, row});
}

onednn::Desc maps(int64_t num_tokens, int64_t num_heads) {
  return onednn::dense({1, num_heads, num_tokens, num_tokens});
}

}  // namespace

Attention::Attention(const dnnl::engine& engine, int64_t num_tokens, int64_t num_heads,
                     int64_t head_dim, float scale)
    : scores_(onednn::make_matmul(engine, heads(num_tokens, num_heads, head_dim),
                                  transposed_heads(num_tokens, num_heads, head_dim), {},
                                  maps(num_tokens, num_heads), {.scale = scale})),
      softmax_(onednn::make_softmax(engine, maps(num_tokens, num_heads))),
      values_(onednn::make_matmul(engine, maps(num_tokens, num_heads),
                                  heads(num_tokens, num_heads, head_dim), {},
                                  heads(num_tokens, num_heads, head_dim), {})) {}

void Attention::score(const dnnl::stream& stream, const float* q, const float* k, float* scores,
                      void* scratchpad) {
  scores_.set(DNNL_ARG_SRC, q);
  scores_.set(DNNL_ARG_WEIGHTS, k);
  scores_.set(DNNL_ARG_DST, scores);
  scores_.run(stream, scratchpad);
}

void Attention::softmax(const dnnl::stream& stream, float* scores, void* scratchpad) {
  softmax_.set(DNNL_ARG_SRC, scores);
  softmax_.set(DNNL_ARG_DST, scores);
  softmax_.run(stream, scratchpad);
}

void Attention::mix(const dnnl::stream& stream, const float* pattern, const float* v, float* z,
                    void* scratchpad) {
  values_.set(DNNL_ARG_SRC, pattern);
  values_.set(DNNL_ARG_WEIGHTS, v);
  values_.set(DNNL_ARG_DST, z);
  values_.run(stream, scratchpad);
}

size_t Attention::scratchpad_bytes() const {
  return std::max(
      {scores_.scratchpad_bytes(), softmax_.scratchpad_bytes(), values_.scratchpad_bytes()});
}

std::vector<PrimitiveInfo> Attention::primitives() const {
  return {{"scores", scores_.impl_info()},
          {"softmax", softmax_.impl_info()},
          {"mix", values_.impl_info()}};
}

}  // namespace phasor
