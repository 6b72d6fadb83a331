// LayerNorm (Ba et al. 2016, arXiv 1607.06450), alone and joined with the residual's add.
#pragma once

#include <cstdint>

#include "engine/packed_weights.h"

namespace phasor {

/// out_t = (x_t − mean) / sqrt(var + eps) · weight + bias for every row of x [N, C]. out may be x.
void layer_norm(const float* x, int64_t num_rows, const Norm& norm, float eps, float* out);

/// x += f, both [num_values].
void add(const float* f, int64_t num_values, float* x);

/// x += f and out = LN(x) in one pass over the rows; all [N, C]. out may be x, which then holds
/// only the normalised sum.
void add_layer_norm(const float* f, int64_t num_rows, const Norm& norm, float eps, float* x,
                    float* out);

}  // namespace phasor
