// Attention's products with AVX512_BF16: CMakeLists.txt has the flags. The loops are those of
// kernels_attention.inc over half as many steps.

#if defined(__AVX512BF16__)

#include "engine/kernels_bfloat16.inc"

namespace phasor::internal {
namespace {

PHASOR_INLINE Halves all_lanes(const float* pair) {
  return bits_as<Halves>(_mm512_set1_epi32(load<int32_t>(pair)));
}

template <int kKeys, int kStride>
PHASOR_INLINE void score_keys(const float* keys, int64_t stride, const float* queries,
                              int64_t num_pairs, float* tile) {
  if (kStride != 0) stride = kStride;
  __m512 sums[kKeys];
  PHASOR_UNROLL
  for (int j = 0; j < kKeys; ++j) sums[j] = _mm512_setzero_ps();
  for (int64_t p = 0; p < num_pairs; ++p) {
    const auto q = load<Halves>(queries + W * p);
    PHASOR_UNROLL
    for (int j = 0; j < kKeys; ++j) {
      sums[j] = _mm512_dpbf16_ps(sums[j], q, all_lanes(keys + j * stride + p));
    }
  }
  PHASOR_UNROLL
  for (int j = 0; j < kKeys; ++j) store(tile + W * j, sums[j]);
}

template <int kStride>
void score_all_keys(const float* keys, int64_t num_keys, int64_t stride, const float* queries,
                    int64_t num_pairs, float* tile) {
  int64_t j = 0;
  for (; j + kKeyBlock <= num_keys; j += kKeyBlock) {
    score_keys<kKeyBlock, kStride>(keys + j * stride, stride, queries, num_pairs, tile + W * j);
  }
  for (; j + 4 <= num_keys; j += 4) {
    score_keys<4, kStride>(keys + j * stride, stride, queries, num_pairs, tile + W * j);
  }
  for (; j < num_keys; ++j) {
    score_keys<1, kStride>(keys + j * stride, stride, queries, num_pairs, tile + W * j);
  }
}

void scores(const float* q, int64_t q_stride, int64_t num_queries, const float* keys,
            int64_t num_keys, int64_t head_dim, int64_t head_stride, float scale, float* transposed,
            float* tile) {
  pack_queries(q, q_stride, num_queries, head_dim, scale, transposed);
  const auto all_keys = head_stride == 16   ? score_all_keys<16>
                        : head_stride == 32 ? score_all_keys<32>
                                            : score_all_keys<0>;
  all_keys(keys, num_keys, head_stride, transposed, (head_dim + 1) / 2, tile);
}

template <int kVectors, int kStride>
void mix_block(const float* tile, const float* inverse_sums, int64_t num_queries,
               const float* values, int64_t num_pairs, int64_t stride, int64_t num_columns,
               float* z, int64_t z_stride) {
  if (kStride != 0) stride = kStride;
  __m512 sums[kQueryBlock][kVectors];
  PHASOR_UNROLL
  for (int i = 0; i < kQueryBlock; ++i) {
    PHASOR_UNROLL
    for (int c = 0; c < kVectors; ++c) sums[i][c] = _mm512_setzero_ps();
  }
  for (int64_t p = 0; p < num_pairs; ++p) {
    Halves v[kVectors];
    PHASOR_UNROLL
    for (int c = 0; c < kVectors; ++c) v[c] = load<Halves>(values + p * 2 * stride + W * c);
    PHASOR_UNROLL
    for (int i = 0; i < kQueryBlock; ++i) {
      const Halves share = all_lanes(tile + W * p + i);
      PHASOR_UNROLL
      for (int c = 0; c < kVectors; ++c) sums[i][c] = _mm512_dpbf16_ps(sums[i][c], share, v[c]);
    }
  }
  PHASOR_UNROLL
  for (int i = 0; i < kQueryBlock; ++i) {
    if (i >= num_queries) break;
    PHASOR_UNROLL
    for (int c = 0; c < kVectors; ++c) {
      store_some(z + i * z_stride + W * c, bits_as<Vector>(sums[i][c]) * inverse_sums[i],
                 num_columns - W * c);
    }
  }
}

template <int kStride>
void mix_all(const float* tile, const float* inverse_sums, int64_t num_queries, const float* values,
             int64_t num_pairs, int64_t stride, int64_t head_dim, float* z, int64_t z_stride) {
  for (int64_t i = 0; i < num_queries; i += kQueryBlock) {
    for (int64_t d = 0; d < head_dim; d += W * kValueVectors) {
      const auto block =
          head_dim - d > W ? mix_block<kValueVectors, kStride> : mix_block<1, kStride>;
      block(tile + i, inverse_sums + i, num_queries - i, values + d, num_pairs, stride,
            head_dim - d, z + i * z_stride + d, z_stride);
    }
  }
}

void mix(float* tile, const float* inverse_sums, int64_t num_queries, const float* values,
         int64_t num_keys, int64_t head_dim, int64_t head_stride, float* z, int64_t z_stride) {
  pack_tile(tile, num_keys);
  const auto all_keys = head_stride == 16   ? mix_all<16>
                        : head_stride == 32 ? mix_all<32>
                                            : mix_all<0>;
  all_keys(tile, inverse_sums, num_queries, values, (num_keys + 1) / 2, head_stride, head_dim, z,
           z_stride);
}

}  // namespace

extern const AttentionProducts kAvx512Bfloat16Products;
const AttentionProducts kAvx512Bfloat16Products = {.name = "avx512_bf16",
                                                   .values_per_float = 2,
                                                   .pack_keys = pack_keys,
                                                   .pack_values = pack_values,
                                                   .scores = scores,
                                                   .mix = mix};

}  // namespace phasor::internal

#endif
