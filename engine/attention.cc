// Three kernels over tiles: scores, softmax, weighted sum of the values.

#include "engine/attention.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "engine/kernels.h"

namespace phasor::internal {
namespace {

int64_t round_up(int64_t count, int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

/// The layout of a thread's scratch memory, in floats: that of products in float32, which need the
/// most.
struct ScratchLayout {
  ScratchLayout(int64_t num_tokens, int64_t head_dim, int64_t relative_rows)
      : stride(packed_head_stride(kernels().products, head_dim)),
        values(num_tokens * stride),
        queries(values + round_up(num_tokens, 2) * stride),
        tile(queries + stride * kernels().tile_queries),
        bias(tile + round_up(num_tokens, kernels().tile_queries) * kernels().tile_queries),
        disentangled(bias + OffsetBias::scratch(num_tokens, kernels().tile_queries)),
        end(disentangled +
            Disentangled::scratch(relative_rows, num_tokens, kernels().tile_queries, stride)) {}

  int64_t stride;
  int64_t keys = 0;      // [T, stride]
  int64_t values;        // [T, stride]
  int64_t queries;       // [stride, W]
  int64_t tile;          // [T, W]
  int64_t bias;          // OffsetBias::scratch()
  int64_t disentangled;  // Disentangled::scratch()
  int64_t end;
};

/// A thread's scratch memory.
struct Scratch {
  Scratch(float* begin, const ScratchLayout& at)
      : keys(begin + at.keys),
        values(begin + at.values),
        queries(begin + at.queries),
        tile(begin + at.tile),
        bias(begin + at.bias),
        disentangled(begin + at.disentangled) {}

  float *keys, *values, *queries, *tile, *bias, *disentangled;
};

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

/// The reverse of copy_out(), for the keys that the tile has.
void copy_in(const float* map, int64_t num_tokens, const ScoreTile& tile) {
  for (int64_t i = 0; i < tile.num_queries; ++i) {
    const float* const row = map + (tile.first_query + i) * num_tokens;
    for (int64_t j = 0; j < tile.num_keys; ++j) {
      tile.scores[j * tile.lanes + i] = row[tile.first_key + j];
    }
  }
}

/// Zeros in the pattern where the scores are −∞: softmax leaves e^−87. A query that sees no key
/// keeps its NaN.
void clear_unseen(const float* scores, const ScoreTile& tile, int64_t num_tokens, float* pattern) {
  const int64_t first = tile.first_query * num_tokens;
  for (int64_t i = first; i < first + tile.num_queries * num_tokens; ++i) {
    if (scores[i] == -std::numeric_limits<float>::infinity()) pattern[i] *= 0.0f;
  }
}

/// All steps, or `only` one: then the maps say which keys are seen, because an observer may have
/// changed it.
void attend_head(std::optional<AttentionStep> only, const AttentionInput& in,
                 const AttentionMaps& maps, int64_t head, const Scratch& scratch, float* z) {
  constexpr int64_t kMostLanes = 16;
  constexpr float kUnseen = -std::numeric_limits<float>::infinity();
  const Kernels& run = kernels();
  const AttentionProducts& products = in.products;
  const ScorePositions& at = in.positions;
  const int64_t T = in.num_tokens;
  const int64_t column = head * in.head_dim;
  const int64_t z_stride = in.num_heads * in.head_dim;
  const int64_t stride = packed_head_stride(products, in.head_dim);
  const auto runs = [&](AttentionStep step) { return !only || *only == step; };
  if (runs(AttentionStep::kScores)) {
    products.pack_keys(in.k + column, T, in.stride, in.head_dim, stride, scratch.keys);
    if (at.bias) at.bias->begin_head(at, head, scratch.bias);
    if (at.disentangled) at.disentangled->begin_head(in, head, scratch.disentangled);
  }
  if (runs(AttentionStep::kMix)) {
    products.pack_values(in.v + column, T, in.stride, in.head_dim, stride, scratch.values);
  }
  for (int64_t i = 0; i < T; i += run.tile_queries) {
    ScoreTile tile = {.scores = scratch.tile,
                      .lanes = run.tile_queries,
                      .first_query = i,
                      .num_queries = std::min(run.tile_queries, T - i),
                      .num_keys = T};
    if (!only || *only == AttentionStep::kScores) at.choose_keys(tile);
    if (runs(AttentionStep::kScores)) {
      products.scores(in.q + i * in.stride + column, in.stride, tile.num_queries,
                      scratch.keys + tile.first_key * stride, tile.num_keys, in.head_dim, stride,
                      in.scale, scratch.queries, tile.scores);
      if (at.bias) at.bias->add_to(tile, at, head, scratch.bias);
      if (at.disentangled) at.disentangled->add_to(tile, in, head, scratch.disentangled);
      at.mask(tile, kUnseen);
      if (maps.scores) copy_out(tile, nullptr, kUnseen, T, maps.scores + head * T * T);
    }
    float inverse_sums[kMostLanes];
    if (runs(AttentionStep::kSoftmax)) {
      if (only) copy_in(maps.scores + head * T * T, T, tile);
      run.softmax(tile.scores, tile.num_keys, inverse_sums);
      if (!only) at.mask(tile, 0.0f);  // softmax leaves e^−87
      if (maps.pattern) copy_out(tile, inverse_sums, 0.0f, T, maps.pattern + head * T * T);
      if (only) clear_unseen(maps.scores + head * T * T, tile, T, maps.pattern + head * T * T);
    }
    if (!runs(AttentionStep::kMix)) continue;
    if (only) {
      copy_in(maps.pattern + head * T * T, T, tile);
      std::fill_n(inverse_sums, kMostLanes, 1.0f);
    }
    products.mix(tile.scores, inverse_sums, tile.num_queries,
                 scratch.values + tile.first_key * stride, tile.num_keys, in.head_dim, stride,
                 z + i * z_stride + column, z_stride);
  }
}

}  // namespace

namespace {

void attend_heads(std::optional<AttentionStep> only, const Threads& threads,
                  const AttentionInput& in, const AttentionMaps& maps, float* scratch, float* z) {
  const Disentangled* const table = in.positions.disentangled;
  const int64_t relative_rows = table == nullptr ? 0 : table->num_rows();
  const int64_t share = attention_scratch(in.num_tokens, in.head_dim, relative_rows);
  const ScratchLayout layout(in.num_tokens, in.head_dim, relative_rows);
  threads.run(in.num_heads, [&](int64_t head, int thread) {
    attend_head(only, in, maps, head, Scratch(scratch + thread * share, layout), z);
  });
}

}  // namespace

void attend(const Threads& threads, const AttentionInput& in, const AttentionMaps& maps,
            float* scratch, float* z) {
  attend_heads({}, threads, in, maps, scratch, z);
}

void attend(AttentionStep step, const Threads& threads, const AttentionInput& in,
            const AttentionMaps& maps, float* scratch, float* z) {
  attend_heads(step, threads, in, maps, scratch, z);
}

int64_t attention_scratch(int64_t num_tokens, int64_t head_dim, int64_t relative_rows) {
  return round_up(ScratchLayout(num_tokens, head_dim, relative_rows).end, 16);
}

}  // namespace phasor::internal
