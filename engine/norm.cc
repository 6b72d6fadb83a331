// The residual add and the norm are one pass over memory.

#include "engine/norm.h"

#include "engine/kernels/kernels.h"

namespace phasor::internal {

void layer_norm(const Threads& threads, const float* f, float* x, int64_t num_rows,
                const Norm& norm, float eps, float* out) {
  const auto width = static_cast<int64_t>(norm.weight.size());
  threads.run_rows(num_rows, width, [&](int64_t first, int64_t count) {
    const int64_t offset = first * width;
    kernels().norm(f == nullptr ? nullptr : f + offset, x + offset, count, width,
                   norm.weight.data(), norm.bias.data(), norm.kind == NormKind::kLayerNorm, eps,
                   out + offset);
  });
}

}  // namespace phasor::internal
