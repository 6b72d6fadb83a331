// The fastest precision on this machine.

#include "phasor/precision.h"

#include "engine/kernels/kernels.h"
#include "engine/onednn.h"

namespace phasor {
using namespace internal;

#if defined(__x86_64__)
constexpr bool kFastInt8 = true;  // measured with SSE4.1, AVX2, AVX-512 with and without VNNI
#else
constexpr bool kFastInt8 = false;  // not measured
#endif

Precision fastest_precision() { return kFastInt8 ? Precision::kInt8 : Precision::kFloat32; }

std::string why_slow(Precision precision) {
  if (precision == Precision::kInt8 && !kFastInt8) {
    return "nobody has measured int8 on this kind of CPU; it may be slower than f32";
  }
  if (precision == Precision::kBfloat16 && !onednn::has_fast_bfloat16()) {
    if (kernels().linear_bfloat16 != nullptr && onednn::may_use(dnnl::cpu_isa::avx2)) {
      return "this CPU does not multiply bfloat16: batches are about as fast as with f32, "
             "and one short text through a large model is faster: half the bytes of weights are "
             "read";
    }
    return "this CPU does not multiply bfloat16 faster than float32: bf16 is emulated, about as "
           "fast as f32";
  }
  return {};
}

}  // namespace phasor
