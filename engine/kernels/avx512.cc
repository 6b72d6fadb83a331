// For machines with AVX-512 (F, BW, DQ, VL): CMakeLists.txt has the flags.
#include "engine/kernels/kernels.inc"

namespace phasor::internal {

extern const Kernels kAvx512Kernels;
const Kernels kAvx512Kernels = kKernels;

}  // namespace phasor::internal
