// Scaled dot-product attention over the tokens of one sequence (Vaswani et al. 2017, §3.2.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/onednn.h"
#include "phasor/encoder.h"

namespace phasor {

/// The compiled attention for sequences of T tokens: scores = scale·Q·Kᵀ, pattern =
/// softmax(scores), z = pattern·V, for all heads at once. The only step of the encoder that mixes
/// rows.
class Attention {
 public:
  Attention(const dnnl::engine& engine, int64_t num_tokens, int64_t num_heads, int64_t head_dim,
            float scale);

  /// q, k [T, H, D] -> scores [H, T, T].
  void score(const dnnl::stream& stream, const float* q, const float* k, float* scores,
             void* scratchpad);
  /// scores -> pattern, in place.
  void softmax(const dnnl::stream& stream, float* scores, void* scratchpad);
  /// pattern [H, T, T], v [T, H, D] -> z [T, H, D].
  void mix(const dnnl::stream& stream, const float* pattern, const float* v, float* z,
           void* scratchpad);

  size_t scratchpad_bytes() const;
  std::vector<PrimitiveInfo> primitives() const;

 private:
  onednn::Primitive scores_;
  onednn::Primitive softmax_;
  onednn::Primitive values_;
};

}  // namespace phasor
