#include "engine/kernels/kernels.h"

#include "engine/onednn.h"

namespace phasor::internal {

extern const Kernels kBaselineKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels, kAvx2VnniKernels, kAvx512Kernels;
extern const AttentionProducts kAvx512Bfloat16Products, kAmxProducts;
#endif

const Kernels& kernels() {
#if defined(__x86_64__)
  if (onednn::may_use(dnnl::cpu_isa::avx512_core)) return kAvx512Kernels;
  if (onednn::may_use(dnnl::cpu_isa::avx2_vnni)) return kAvx2VnniKernels;
  if (onednn::may_use(dnnl::cpu_isa::avx2)) return kAvx2Kernels;
#endif
  return kBaselineKernels;
}

const AttentionProducts& attention_products([[maybe_unused]] Precision precision) {
#if defined(__x86_64__)
  if (precision != Precision::kFloat32) {
    // oneDNN asks Linux for the permission to use AMX before it says that it may.
    if (onednn::may_use(dnnl::cpu_isa::avx512_core_amx)) return kAmxProducts;
    if (onednn::has_fast_bfloat16_vectors()) return kAvx512Bfloat16Products;
  }
#endif
  return kernels().products;
}

int64_t packed_head_stride(const AttentionProducts& products, int64_t head_dim) {
  constexpr int64_t kLane = 32;
  return (head_dim + kLane - 1) / kLane * kLane / products.values_per_float;
}

}  // namespace phasor::internal
