// Compiling plans for a group and laying out its scratch memory.

#include "engine/worker.h"

#include <omp.h>

#include <algorithm>
#include <utility>

namespace phasor {

RowPlan::RowPlan(const dnnl::engine& engine, int64_t num_rows, const ModelConfig& config,
                 const PackedBlock& block)
    : project(engine, num_rows, block.q.weight.get_desc()),
      up(engine, num_rows, block.up.weight.get_desc(), config.activation),
      down(engine, num_rows, block.down.weight.get_desc()),
      up_linear(engine, num_rows, block.up.weight.get_desc()),
      activate(onednn::make_activation(engine, onednn::dense({num_rows, config.d_ff}),
                                       config.activation)) {}

size_t RowPlan::scratchpad_bytes() const {
  return std::max({project.scratchpad_bytes(), up.scratchpad_bytes(), down.scratchpad_bytes(),
                   up_linear.scratchpad_bytes(), activate.scratchpad_bytes()});
}

void Worker::prepare(const Group& group, const ModelConfig& config, const PackedBlock& block) {
  const int team_size = omp_get_max_threads();
  rows_ = row_plans_.get({group.num_rows, team_size}, [&] {
    return std::make_shared<RowPlan>(engine_, group.num_rows, config, block);
  });
  size_t scratchpad_bytes = rows_->scratchpad_bytes();
  attention_.clear();
  for (const Segment& segment : group.segments) {
    attention_.push_back(attention_plans_.get({segment.num_tokens(), team_size}, [&] {
      return std::make_shared<Attention>(engine_, segment.num_tokens(), config.num_heads,
                                         config.head_dim());
    }));
    scratchpad_bytes = std::max(scratchpad_bytes, attention_.back()->scratchpad_bytes());
  }
  scratchpad_.reserve(static_cast<int64_t>(scratchpad_bytes / sizeof(float)) + 1);

  constexpr int64_t kCacheLine = 16;  // floats
  const auto aligned = [](int64_t count) {
    return (count + kCacheLine - 1) / kCacheLine * kCacheLine;
  };
  const int64_t model = aligned(group.num_rows * config.d_model);
  const int64_t mlp = aligned(group.num_rows * config.d_ff);
  const int64_t scores = config.num_heads * group.max_tokens * group.max_tokens;
  float* next = buffer_.reserve(7 * model + mlp + scores);
  const auto take = [&](int64_t count) { return std::exchange(next, next + count); };
  // q, k, v and z are read no more when the MLP runs, but observers' slices stay simple if all
  // buffers are apart.
  activations_ = {.x = take(model),
                  .normed = take(model),
                  .q = take(model),
                  .k = take(model),
                  .v = take(model),
                  .z = take(model),
                  .out = take(model),
                  .mlp = take(mlp),
                  .scores = take(scores)};
}

}  // namespace phasor
