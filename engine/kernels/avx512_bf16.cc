// Attention's products with AVX512_BF16: CMakeLists.txt has the flags.

#if defined(__AVX512BF16__)

#include "engine/kernels/bfloat16.inc"
#include "engine/kernels/products.inc"

namespace phasor::internal {
namespace {

struct Bfloat16Unit {
  using Factors = Halves;
  static constexpr int kTerms = 2;
  static PHASOR_INLINE Vector add(Vector sum, const float* pair, Halves factors) {
    const auto one = bits_as<Halves>(_mm512_set1_epi32(load<int32_t>(pair)));
    return bits_as<Vector>(_mm512_dpbf16_ps(bits_as<__m512>(sum), one, factors));
  }
};

void scores(const float* q, int64_t q_stride, int64_t num_queries, const float* keys,
            int64_t num_keys, int64_t head_dim, int64_t head_stride, float scale, float* transposed,
            float* tile) {
  pack_queries(q, q_stride, num_queries, head_dim, scale, transposed);
  score_packed<Bfloat16Unit>(keys, num_keys, head_stride, transposed, (head_dim + 1) / 2, tile);
}

void mix(float* tile, const float* inverse_sums, int64_t num_queries, const float* values,
         int64_t num_keys, int64_t head_dim, int64_t head_stride, float* z, int64_t z_stride) {
  pack_tile(tile, num_keys);
  mix_packed<Bfloat16Unit>(tile, inverse_sums, num_queries, values, (num_keys + 1) / 2, head_stride,
                           head_dim, z, z_stride);
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
