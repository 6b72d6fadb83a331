// Three kernels over tiles: scores, softmax, weighted sum of the values.

#include "engine/attention.h"

#include <omp.h>

#include <algorithm>
#include <limits>

#include "engine/kernels.h"

namespace phasor::internal {
namespace {

// Fewer multiplications than this are not worth waking other threads.
constexpr int64_t kParallelWork = 1 << 20;

int64_t round_up(int64_t count, int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

/// A thread's scratch memory.
struct Scratch {
  Scratch(float* begin, int64_t num_tokens, int64_t head_dim)
      : stride(packed_head_stride(head_dim)),
        keys(begin),
        values(keys + num_tokens * stride),
        queries(values + num_tokens * stride),
        tile(queries + stride * kernels().tile_queries),
        bias(tile + num_tokens * kernels().tile_queries),
        disentangled(bias + OffsetBias::scratch(num_tokens, kernels().tile_queries)) {}

  int64_t stride;
  float* keys;          // [T, stride]
  float* values;        // [T, stride]
  float* queries;       // [stride, W]
  float* tile;          // [T, W]
  float* bias;          // OffsetBias::scratch()
  float* disentangled;  // Disentangled::scratch()
};

void pack(const float* from, const AttentionInput& in, int64_t stride, float* to) {
  for (int64_t t = 0; t < in.num_tokens; ++t, to += stride) {
    std::copy_n(from + t * in.stride, in.head_dim, to);
    std::fill_n(to + in.head_dim, stride - in.head_dim, 0.0f);
  }
}

/// A tile -> its rows of a head's map [T, T]; `unseen` for the keys that it lacks.
void copy_out(const ScoreTile& tile, const float* factors, float unseen, int64_t num_tokens,
              float* map) {
  for (int64_t i = 0; i < tile.num_queries; ++i) {
    const float factor = factors == nullptr ? 1.0f : factors[i];
    float* const row = map + (tile.first_query + i) * num_tokens;
    std::fill_n(row, num_tokens, unseen);
    for (int64_t j = 0; j < tile.num_keys; ++j) {
      row[tile.first_key + j] = tile.scores[j * tile.lanes + i] * factor;
    }
  }
}

void attend_head(const AttentionInput& in, const AttentionMaps& maps, int64_t head,
                 const Scratch& scratch, float* z) {
  constexpr int64_t kMostLanes = 16;
  constexpr float kUnseen = -std::numeric_limits<float>::infinity();
  const Kernels& run = kernels();
  const ScorePositions& at = in.positions;
  const int64_t T = in.num_tokens;
  const int64_t column = head * in.head_dim;
  const int64_t z_stride = in.num_heads * in.head_dim;
  pack(in.k + column, in, scratch.stride, scratch.keys);
  pack(in.v + column, in, scratch.stride, scratch.values);
  if (at.bias) at.bias->begin_head(at, head, scratch.bias);
  if (at.disentangled) at.disentangled->begin_head(in, head, scratch.disentangled);
  for (int64_t i = 0; i < T; i += run.tile_queries) {
    ScoreTile tile = {.scores = scratch.tile,
                      .lanes = run.tile_queries,
                      .first_query = i,
                      .num_queries = std::min(run.tile_queries, T - i)};
    at.choose_keys(tile);
    run.scores(in.q + i * in.stride + column, in.stride, tile.num_queries,
               scratch.keys + tile.first_key * scratch.stride, tile.num_keys, in.head_dim,
               scratch.stride, in.scale, scratch.queries, tile.scores);
    if (at.bias) at.bias->add_to(tile, at, head, scratch.bias);
    if (at.disentangled) at.disentangled->add_to(tile, in, head, scratch.disentangled);
    at.mask(tile, kUnseen);
    if (maps.scores) copy_out(tile, nullptr, kUnseen, T, maps.scores + head * T * T);
    float inverse_sums[kMostLanes];
    run.softmax(tile.scores, tile.num_keys, inverse_sums);
    at.mask(tile, 0.0f);  // softmax leaves e^−87
    if (maps.pattern) copy_out(tile, inverse_sums, 0.0f, T, maps.pattern + head * T * T);
    run.mix(tile.scores, inverse_sums, tile.num_queries,
            scratch.values + tile.first_key * scratch.stride, tile.num_keys, in.head_dim,
            scratch.stride, z + i * z_stride + column, z_stride);
  }
}

}  // namespace

void attend(const AttentionInput& in, const AttentionMaps& maps, int64_t share, float* scratch,
            float* z) {
  const int64_t work = in.num_tokens * in.num_tokens * in.num_heads * in.head_dim;
#pragma omp parallel for if (work >= kParallelWork)
  for (int64_t head = 0; head < in.num_heads; ++head) {
    const Scratch mine(scratch + omp_get_thread_num() * share, in.num_tokens, in.head_dim);
    attend_head(in, maps, head, mine, z);
  }
}

int64_t attention_scratch(int64_t num_tokens, int64_t head_dim, int64_t relative_rows) {
  const int64_t lanes = kernels().tile_queries;
  const int64_t tokens = round_up(num_tokens, lanes);
  const int64_t stride = packed_head_stride(head_dim);
  return round_up(2 * tokens * stride + stride * lanes + tokens * lanes +
                      OffsetBias::scratch(tokens, lanes) +
                      Disentangled::scratch(relative_rows, tokens, lanes, stride),
                  16);
}

}  // namespace phasor::internal
