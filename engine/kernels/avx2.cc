// For machines with AVX2 and FMA: CMakeLists.txt has the flags.
#include "engine/kernels/kernels.inc"

namespace phasor::internal {

extern const Kernels kAvx2Kernels;
const Kernels kAvx2Kernels = kKernels;

}  // namespace phasor::internal
