// The table's rows are handled as if they were keys: a tile of their products, [rows, W], comes
// from the same kernel as the scores. Only rows that an offset of the sequence takes are computed.

#include "engine/positions/disentangled.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "engine/attention.h"
#include "engine/kernels/kernels.h"

namespace phasor::internal {
namespace {

/// DeBERTa's bucket of an offset, −S … S. In float32 like the source, whose rounding determines
/// where a bucket ends.
int64_t bucket_of(int64_t offset, const DisentangledConfig& config) {
  const int64_t middle = config.num_buckets / 2;
  const int64_t length = std::abs(offset);
  if (config.max_distance == 0 || length <= middle) return offset;
  const auto exact = static_cast<float>(middle);
  const float last = static_cast<float>(config.max_distance - 1) / exact;
  const float share = std::log(static_cast<float>(length) / exact) / std::log(last);
  const auto bucket =
      static_cast<int64_t>(std::ceil(share * static_cast<float>(middle - 1))) + middle;
  return offset < 0 ? -bucket : bucket;
}

/// The rows that the offsets of a sequence take.
struct RowRange {
  int64_t first, count;
};

RowRange rows_of(const Disentangled& table, const ScorePositions& at) {
  int64_t longest = at.num_tokens() - 1;
  if (!at.consecutive) {
    const auto [least, most] = std::ranges::minmax(at.positions);
    longest = std::llround(most - least);
  }
  const int64_t first = table.row_of(-longest);
  return {first, table.row_of(longest) - first + 1};
}

/// A head's scratch memory.
struct Room {
  int32_t* rows;        // [2T + W], of the offsets from 1 − T up, where positions are consecutive
  float* keys;          // [rows, stride]
  float* queries;       // [rows, stride]
  float* products;      // [rows, W]: of a tile's queries with the rows' keys
  float* transposed;    // [stride, W]
  float* key_products;  // [T / W, rows, W]: of the sequence's keys with the rows' queries
};

Room room_in(float* scratch, int64_t num_rows, int64_t num_tokens, int64_t lanes, int64_t stride) {
  float* const keys = scratch + 2 * num_tokens + lanes;
  float* const queries = keys + num_rows * stride;
  float* const products = queries + num_rows * stride;
  float* const transposed = products + num_rows * lanes;
  return {reinterpret_cast<int32_t*>(scratch), keys, queries, products, transposed,
          transposed + stride * lanes};
}

int64_t max_offset(const DisentangledConfig& config) {
  return std::max(config.max_distance, config.num_buckets);
}

void pack(const std::vector<float>& from, const RowRange& rows, const AttentionOperands& in,
          int64_t head, int64_t stride, float* to) {
  const int64_t width = in.num_heads * in.head_dim;
  in.products.pack_keys(&from[rows.first * width + head * in.head_dim], rows.count, width,
                        in.head_dim, stride, to);
}

}  // namespace

int64_t RelativeRows::bytes(const DisentangledConfig& config, int64_t attention_width) {
  const int64_t terms = (config.content_to_position ? 1 : 0) + (config.position_to_content ? 1 : 0);
  return terms * 2 * config.num_buckets * attention_width * int64_t{sizeof(float)};
}

int64_t Disentangled::bytes(const DisentangledConfig& config) {
  return (2 * max_offset(config) + 1) * int64_t{sizeof(int32_t)};
}

Disentangled::Disentangled(const DisentangledConfig& config)
    : num_rows_(2 * config.num_buckets), max_offset_(max_offset(config)) {
  row_of_.reserve(2 * max_offset_ + 1);
  for (int64_t offset = -max_offset_; offset <= max_offset_; ++offset) {
    const int64_t row = bucket_of(offset, config) + config.num_buckets;
    row_of_.push_back(static_cast<int32_t>(std::clamp<int64_t>(row, 0, num_rows_ - 1)));
  }
}

int64_t Disentangled::row_of(int64_t offset) const {
  return row_of_[std::clamp(offset, -max_offset_, max_offset_) + max_offset_];
}

int64_t Disentangled::scratch(int64_t rows, int64_t num_tokens, int64_t lanes,
                              int64_t head_stride) {
  return rows * (2 * head_stride + 2 * lanes + num_tokens) + head_stride * lanes + 2 * num_tokens +
         lanes;
}

void Disentangled::begin_head(const AttentionOperands& in, int64_t head, float* scratch) const {
  const int64_t W = kernels().tile_queries, stride = packed_head_stride(in.products, in.head_dim);
  const RelativeRows& relative = *in.positions.relative;
  const RowRange rows = rows_of(*this, in.positions);
  const Room room = room_in(scratch, rows.count, in.num_tokens, W, stride);
  for (int64_t n = 0; n < 2 * in.num_tokens + W; ++n) {
    const int64_t row = row_of(n - in.num_tokens + 1) - rows.first;
    room.rows[n] = static_cast<int32_t>(std::min(row, rows.count - 1));
  }
  if (!relative.keys.empty()) pack(relative.keys, rows, in, head, stride, room.keys);
  if (relative.queries.empty()) return;
  pack(relative.queries, rows, in, head, stride, room.queries);
  const float scale = in.positions.factor * in.scale;
  for (int64_t j = 0; j < in.num_tokens; j += W) {
    in.products.scores(in.k + j * in.stride + head * in.head_dim, in.stride,
                       std::min(W, in.num_tokens - j), room.queries, rows.count, in.head_dim,
                       stride, scale, room.transposed, room.key_products + j * rows.count);
  }
}

void Disentangled::add_to(const ScoreTile& tile, const AttentionOperands& in, int64_t head,
                          float* scratch) const {
  const Kernels& run = kernels();
  const int64_t W = tile.lanes, stride = packed_head_stride(in.products, in.head_dim);
  const ScorePositions& at = in.positions;
  const RowRange rows = rows_of(*this, at);
  const Room room = room_in(scratch, rows.count, in.num_tokens, W, stride);
  const bool has_keys = !at.relative->keys.empty();
  const bool has_queries = !at.relative->queries.empty();
  if (has_keys) {
    in.products.scores(in.q + tile.first_query * in.stride + head * in.head_dim, in.stride,
                       tile.num_queries, room.keys, rows.count, in.head_dim, stride,
                       at.factor * in.scale, room.transposed, room.products);
  }
  const float* const of_queries = has_keys ? room.products : nullptr;
  const float* const of_keys = has_queries ? room.key_products : nullptr;
  if (at.consecutive) {
    const int64_t offset = tile.first_query - tile.first_key;
    run.add_by_row(tile.scores, tile.num_keys, room.rows + in.num_tokens - 1 + offset, of_queries,
                   of_keys, tile.first_key, rows.count);
    return;
  }
  constexpr int64_t kMostLanes = 16;
  int32_t row_of_query[kMostLanes] = {};
  for (int64_t j = 0; j < tile.num_keys; ++j) {
    const int64_t key = tile.first_key + j;
    for (int64_t i = 0; i < tile.num_queries; ++i) {
      row_of_query[i] =
          static_cast<int32_t>(row_of(-at.offset(tile.first_query + i, key)) - rows.first);
    }
    run.add_by_row(tile.scores + j * W, 1, row_of_query, of_queries, of_keys, key, rows.count);
  }
}

}  // namespace phasor::internal
