
#include "engine/kernels.h"

#include "engine/onednn.h"

namespace phasor::internal {

extern const Kernels kBaselineKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels, kAvx2VnniKernels, kAvx512Kernels;
#endif

const Kernels& kernels() {
#if defined(__x86_64__)
  if (onednn::may_use(dnnl::cpu_isa::avx512_core)) return kAvx512Kernels;
  if (onednn::may_use(dnnl::cpu_isa::avx2_vnni)) return kAvx2VnniKernels;
  if (onednn::may_use(dnnl::cpu_isa::avx2)) return kAvx2Kernels;
#endif
  return kBaselineKernels;
}

int64_t packed_head_stride(int64_t head_dim) {
  constexpr int64_t kLane = 32;
  return (head_dim + kLane - 1) / kLane * kLane;
}

}  // namespace phasor::internal
