// For every machine: the compiler's default instruction set.
#include "engine/kernels/kernels.inc"

namespace phasor::internal {

extern const Kernels kBaselineKernels;
const Kernels kBaselineKernels = kKernels;

}  // namespace phasor::internal
