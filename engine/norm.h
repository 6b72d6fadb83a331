// LayerNorm (Ba et al. 2016, arXiv 1607.06450) and RMS norm (Zhang & Sennrich 2019, arXiv
// 1910.07467), alone and fused with the residual add.
#pragma once

#include <cstdint>

#include "engine/packed_weights.h"
#include "engine/team.h"

namespace phasor::internal {

/// x += f and out_t = (x_t − mean) / sqrt(var + eps) · weight + bias for every row of x, in one
/// pass; all [N, C]. Nothing is added where f is null. An RMS norm is the same with a mean of 0.
/// out may be x, which then holds only the result.
void layer_norm(const Threads& threads, const float* f, float* x, int64_t num_rows,
                const Norm& norm, float eps, float* out);

}  // namespace phasor::internal
