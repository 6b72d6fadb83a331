// Linear maps over the rows of a packed batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/onednn.h"
#include "engine/packed_weights.h"

namespace phasor {

/// y = f(x·W + b) compiled for one row count; weights are given at each run, so that all layers
/// share one compiled map.
class Linear {
 public:
  Linear(const dnnl::engine& engine, int64_t num_rows, const onednn::Desc& weight,
         std::optional<Activation> activation = {});

  /// x [N, in] -> y [N, out].
  void run(const dnnl::stream& stream, const float* x, const PackedLinear& weights, float* y,
           void* scratchpad);

  size_t scratchpad_bytes() const { return matmul_.scratchpad_bytes(); }
  const std::string& impl_info() const { return matmul_.impl_info(); }

 private:
  onednn::Primitive matmul_;
};

}  // namespace phasor
