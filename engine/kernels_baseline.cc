// For every machine: what the compiler may assume by itself.
#include "engine/kernels.inc"

namespace phasor::internal {

extern const Kernels kBaselineKernels;
const Kernels kBaselineKernels = kKernels;

}  // namespace phasor::internal
