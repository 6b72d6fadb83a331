// For machines with AVX2, FMA and AVX-VNNI: CMakeLists.txt has the flags.
#include "engine/kernels/kernels.inc"

namespace phasor::internal {

extern const Kernels kAvx2VnniKernels;
const Kernels kAvx2VnniKernels = kKernels;

}  // namespace phasor::internal
