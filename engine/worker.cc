// Compiling plans for a group and laying out its scratch memory.

#include "engine/worker.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace phasor {

RowPlan::RowPlan(const dnnl::engine& engine, int64_t num_rows, const ModelConfig& config,
                 const PackedWeights& weights)
    : project(engine, num_rows, weights.blocks.front().q.weight.get_desc()),
      merge(engine, num_rows, weights.blocks.front().out.weight.get_desc()),
      up(engine, num_rows, weights.blocks.front().up.weight.get_desc(), config.activation),
      down(engine, num_rows, weights.blocks.front().down.weight.get_desc()),
      up_linear(engine, num_rows, weights.blocks.front().up.weight.get_desc()),
      activate(onednn::make_activation(engine, onednn::dense({num_rows, config.d_ff}),
                                       config.activation)) {
  if (weights.embedding_map) {
    embedding_map.emplace(engine, num_rows, weights.embedding_map->weight.get_desc());
  }
}

size_t RowPlan::scratchpad_bytes() const {
  return std::max({embedding_map ? embedding_map->scratchpad_bytes() : 0,
                   project.scratchpad_bytes(), merge.scratchpad_bytes(), up.scratchpad_bytes(),
                   down.scratchpad_bytes(), up_linear.scratchpad_bytes(),
                   activate.scratchpad_bytes()});
}

void Worker::prepare(const Group& group, const ModelConfig& config, const PackedWeights& weights) {
  const int team_size = omp_get_max_threads();
  rows_ = row_plans_.get({group.num_rows, team_size}, [&] {
    return std::make_shared<RowPlan>(engine_, group.num_rows, config, weights);
  });
  size_t scratchpad_bytes = rows_->scratchpad_bytes();
  attention_.clear();
  const auto head_dim = static_cast<float>(config.head_dim());
  const float scale = config.scale_scores ? 1.0f / std::sqrt(head_dim) : 1.0f;
  for (const Segment& segment : group.segments) {
    attention_.push_back(attention_plans_.get({segment.num_tokens(), team_size}, [&] {
      return std::make_shared<Attention>(engine_, segment.num_tokens(), config.num_heads,
                                         config.head_dim(), scale);
    }));
    scratchpad_bytes = std::max(scratchpad_bytes, attention_.back()->scratchpad_bytes());
  }
  scratchpad_.reserve(static_cast<int64_t>(scratchpad_bytes / sizeof(float)) + 1);

  constexpr int64_t kCacheLine = 16;  // floats
  const auto aligned = [](int64_t count) {
    return (count + kCacheLine - 1) / kCacheLine * kCacheLine;
  };
  const int64_t widest = std::max(config.d_model, config.embedding_width());
  const int64_t model = aligned(group.num_rows * widest);
  const int64_t heads = aligned(group.num_rows * config.attention_width());
  const int64_t mlp = aligned(group.num_rows * config.d_ff);
  const int64_t gate = config.gated_mlp ? mlp : 0;
  const int64_t scores = config.num_heads * group.max_tokens * group.max_tokens;
  float* next = buffer_.reserve(3 * model + 4 * heads + mlp + gate + scores);
  const auto take = [&](int64_t count) { return std::exchange(next, next + count); };
  // q, k, v and z are read no more when the MLP runs, but observers' slices stay simple if all
  // buffers are apart.
  activations_ = {.x = take(model),
                  .normed = take(model),
                  .q = take(heads),
                  .k = take(heads),
                  .v = take(heads),
                  .z = take(heads),
                  .out = take(model),
                  .mlp = take(mlp),
                  .gate = take(gate),
                  .scores = take(scores)};
}

std::vector<PrimitiveInfo> Worker::primitives() const {
  if (!rows_) return {};
  std::vector<PrimitiveInfo> all;
  if (rows_->embedding_map) all.push_back({"embedding_map", rows_->embedding_map->impl_info()});
  all.push_back({"qkv", rows_->project.impl_info()});
  for (PrimitiveInfo& step : attention_.front()->primitives()) all.push_back(std::move(step));
  all.push_back({"out", rows_->merge.impl_info()});
  all.push_back({"up", rows_->up.impl_info()});
  all.push_back({"down", rows_->down.impl_info()});
  return all;
}

}  // namespace phasor
