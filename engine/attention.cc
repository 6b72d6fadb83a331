// Three kernels over tiles: scores, softmax, weighted sum of the values.

#include "engine/attention.h"

#include <omp.h>

#include <algorithm>

#include "engine/kernels.h"

namespace phasor::internal {
namespace {

// Fewer multiplications than this are not worth waking other threads.
constexpr int64_t kParallelWork = 1 << 20;

int64_t round_up(int64_t count, int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

/// The layout of a thread's scratch memory, in floats.
struct ScratchLayout {
  ScratchLayout(int64_t num_tokens, int64_t head_dim)
      : stride(packed_head_stride(head_dim)),
        values(num_tokens * stride),
        queries(values + num_tokens * stride),
        tile(queries + stride * kernels().tile_queries),
        bias(tile + round_up(num_tokens, kernels().tile_queries) * kernels().tile_queries),
        end(bias + PlacedBias::scratch(num_tokens, kernels().tile_queries)) {}

  int64_t stride;
  int64_t keys = 0;  // [T, stride]
  int64_t values;    // [T, stride]
  int64_t queries;   // [stride, W]
  int64_t tile;      // [T, W]
  int64_t bias;      // PlacedBias::scratch()
  int64_t end;
};

/// A thread's scratch memory.
struct Scratch {
  Scratch(float* begin, const ScratchLayout& at)
      : stride(at.stride),
        keys(begin + at.keys),
        values(begin + at.values),
        queries(begin + at.queries),
        tile(begin + at.tile),
        bias(begin + at.bias) {}

  int64_t stride;
  float *keys, *values, *queries, *tile, *bias;
};

void pack(const float* from, const AttentionInput& in, int64_t stride, float* to) {
  for (int64_t t = 0; t < in.num_tokens; ++t, to += stride) {
    std::copy_n(from + t * in.stride, in.head_dim, to);
    std::fill_n(to + in.head_dim, stride - in.head_dim, 0.0f);
  }
}

/// tile [T, num_queries of W] -> rows of map [T, T].
void copy_out(const float* tile, int64_t num_queries, int64_t num_keys, const float* factors,
              float* map) {
  const int64_t lanes = kernels().tile_queries;
  for (int64_t i = 0; i < num_queries; ++i) {
    const float factor = factors == nullptr ? 1.0f : factors[i];
    for (int64_t j = 0; j < num_keys; ++j) map[i * num_keys + j] = tile[j * lanes + i] * factor;
  }
}

void attend_head(const AttentionInput& in, const AttentionMaps& maps, int64_t head,
                 const Scratch& scratch, float* z) {
  constexpr int64_t kMostLanes = 16;
  const Kernels& run = kernels();
  const int64_t T = in.num_tokens;
  const int64_t column = head * in.head_dim;
  const int64_t z_stride = in.num_heads * in.head_dim;
  pack(in.k + column, in, scratch.stride, scratch.keys);
  pack(in.v + column, in, scratch.stride, scratch.values);
  if (in.bias) in.bias->begin_head(head, scratch.bias);
  for (int64_t i = 0; i < T; i += run.tile_queries) {
    const int64_t num_queries = std::min(run.tile_queries, T - i);
    const int64_t row = (head * T + i) * T;  // in the maps
    run.scores(in.q + i * in.stride + column, in.stride, num_queries, scratch.keys, T, in.head_dim,
               scratch.stride, in.scale, scratch.queries, scratch.tile);
    if (in.bias) {
      in.bias->add_to(scratch.tile, head, i, num_queries, run.tile_queries, scratch.bias);
    }
    if (maps.scores) copy_out(scratch.tile, num_queries, T, nullptr, maps.scores + row);
    float inverse_sums[kMostLanes];
    run.softmax(scratch.tile, T, inverse_sums);
    if (maps.pattern) copy_out(scratch.tile, num_queries, T, inverse_sums, maps.pattern + row);
    run.mix(scratch.tile, inverse_sums, num_queries, scratch.values, T, in.head_dim, scratch.stride,
            z + i * z_stride + column, z_stride);
  }
}

}  // namespace

void attend(const AttentionInput& in, const AttentionMaps& maps, float* scratch, float* z) {
  const int64_t work = in.num_tokens * in.num_tokens * in.num_heads * in.head_dim;
  const int64_t share = attention_scratch(in.num_tokens, in.head_dim);
  const ScratchLayout layout(in.num_tokens, in.head_dim);
#pragma omp parallel for if (work >= kParallelWork)
  for (int64_t head = 0; head < in.num_heads; ++head) {
    const Scratch mine(scratch + omp_get_thread_num() * share, layout);
    attend_head(in, maps, head, mine, z);
  }
}

int64_t attention_scratch(int64_t num_tokens, int64_t head_dim) {
  return round_up(ScratchLayout(num_tokens, head_dim).end, 16);
}

}  // namespace phasor::internal
