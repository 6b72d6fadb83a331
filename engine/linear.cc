// A linear map is one matmul primitive, with bias and activation fused into it.

#include "engine/linear.h"

namespace phasor {
namespace {

onednn::Primitive make(const dnnl::engine& engine, int64_t num_rows, const onednn::Desc& weight,
                       std::optional<Activation> activation) {
  const auto [in, out] = onednn::matrix_size(weight);
  return onednn::make_matmul(engine, onednn::dense({num_rows, in}), weight, onednn::dense({1, out}),
                             onednn::dense({num_rows, out}), {.activation = activation});
}

}  // namespace

Linear::Linear(const dnnl::engine& engine, int64_t num_rows, const onednn::Desc& weight,
               std::optional<Activation> activation)
    : matmul_(make(engine, num_rows, weight, activation)) {}

void Linear::run(const dnnl::stream& stream, const float* x, const PackedLinear& weights, float* y,
                 void* scratchpad) {
  matmul_.set(DNNL_ARG_SRC, x);
  matmul_.set(DNNL_ARG_WEIGHTS, weights.weight);
  matmul_.set(DNNL_ARG_BIAS, weights.bias);
  matmul_.set(DNNL_ARG_DST, y);
  matmul_.run(stream, scratchpad);
}

}  // namespace phasor
