// Three kernels over tiles: scores, softmax, weighted sum of the values.

#include "engine/attention.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "engine/kernels/kernels.h"

namespace phasor::internal {
namespace {

constexpr int64_t kPartQueries = 128;  // of a head; a multiple of every tile_queries

int64_t round_up(int64_t count, int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

/// The layout of a thread's scratch memory, in floats, for products in float32, which need the
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

/// Attention in one head: all steps, or `only` one. Then the maps say which keys are seen, because
/// an observer may have changed them.
class HeadAttention {
 public:
  HeadAttention(std::optional<AttentionStep> only, const AttentionOperands& in,
                const AttentionMaps& maps, int64_t head, float* scratch, const ScratchLayout& at)
      : only_(only),
        in_(in),
        scores_map_(of_head(maps.scores, in, head)),
        pattern_map_(of_head(maps.pattern, in, head)),
        head_(head),
        column_(head * in.head_dim),
        kv_column_(in.kv_head(head) * in.head_dim),
        stride_(packed_head_stride(in.products, in.head_dim)),
        scratch_(scratch),
        at_(at) {}

  // For the queries first … end − 1; the first belongs to a tile's begin.
  void run(int64_t first, int64_t end) const {
    pack();
    for (int64_t i = first; i < end; i += kernels_.tile_queries) {
      ScoreTile tile = tile_at(i, in_.num_tokens);
      float inverse_sums[kMostLanes];
      if (runs(AttentionStep::kScores)) scores(tile);
      if (runs(AttentionStep::kSoftmax)) softmax(tile, inverse_sums);
      if (runs(AttentionStep::kMix)) mix(tile, inverse_sums);
    }
  }

  void write_positions(int64_t first, int64_t end, float* out) const {
    begin_positions();
    for (int64_t i = first; i < end; i += kernels_.tile_queries) {
      ScoreTile tile = tile_at(i, end);
      in_.positions.choose_keys(tile);
      std::fill_n(tile.scores, tile.num_keys * tile.lanes, 0.0f);
      add_positions(tile);
      copy_out(tile, nullptr, kUnseen, in_.num_tokens, out - first * in_.num_tokens);
    }
  }

 private:
  static constexpr int64_t kMostLanes = 16;
  static constexpr float kUnseen = -std::numeric_limits<float>::infinity();

  static float* of_head(float* maps, const AttentionOperands& in, int64_t head) {
    return maps == nullptr ? nullptr : maps + head * in.num_tokens * in.num_tokens;
  }
  ScoreTile tile_at(int64_t query, int64_t end) const {
    return {.scores = scratch_ + at_.tile,
            .lanes = kernels_.tile_queries,
            .first_query = query,
            .num_queries = std::min(kernels_.tile_queries, end - query),
            .num_keys = in_.num_tokens};
  }
  bool runs(AttentionStep step) const { return !only_ || *only_ == step; }

  void pack() const {
    if (runs(AttentionStep::kScores)) {
      in_.products.pack_keys(in_.k + kv_column_, in_.num_tokens, in_.stride, in_.head_dim, stride_,
                             scratch_ + at_.keys);
      begin_positions();
    }
    if (runs(AttentionStep::kMix)) {
      in_.products.pack_values(in_.v + kv_column_, in_.num_tokens, in_.stride, in_.head_dim,
                               stride_, scratch_ + at_.values);
    }
  }

  void scores(ScoreTile& tile) const {
    in_.positions.choose_keys(tile);
    in_.products.scores(
        in_.q + tile.first_query * in_.stride + column_, in_.stride, tile.num_queries,
        scratch_ + at_.keys + tile.first_key * stride_, tile.num_keys, in_.head_dim, stride_,
        in_.cap > 0 ? in_.scale / in_.cap : in_.scale, scratch_ + at_.queries, tile.scores);
    if (in_.cap > 0) cap(tile);
    add_positions(tile);
    if (scores_map_) copy_out(tile, nullptr, kUnseen, in_.num_tokens, scores_map_);
  }

  // c·tanh(s/c); the scores are those of s/c already.
  void cap(const ScoreTile& tile) const {
    const int64_t count = tile.num_keys * tile.lanes;
    kernels_.activate(tile.scores, count, Activation::kTanh, false);
    for (int64_t i = 0; i < count; ++i) tile.scores[i] *= in_.cap;
  }

  void begin_positions() const {
    const ScorePositions& at = in_.positions;
    if (at.bias) at.bias->begin_head(at, head_, scratch_ + at_.bias);
    if (at.disentangled) at.disentangled->begin_head(in_, head_, scratch_ + at_.disentangled);
  }

  void add_positions(const ScoreTile& tile) const {
    const ScorePositions& at = in_.positions;
    if (at.bias) at.bias->add_to(tile, at, head_, scratch_ + at_.bias);
    if (at.disentangled) at.disentangled->add_to(tile, in_, head_, scratch_ + at_.disentangled);
    at.mask(tile, kUnseen);
  }

  void softmax(const ScoreTile& tile, float* inverse_sums) const {
    if (only_) copy_in(scores_map_, in_.num_tokens, tile);
    kernels_.softmax(tile.scores, tile.num_keys, inverse_sums);
    if (!only_) in_.positions.mask(tile, 0.0f);  // softmax leaves e^−87
    if (pattern_map_) copy_out(tile, inverse_sums, 0.0f, in_.num_tokens, pattern_map_);
    if (only_) clear_unseen(scores_map_, tile, in_.num_tokens, pattern_map_);
  }

  void mix(const ScoreTile& tile, float* inverse_sums) const {
    if (only_) {
      copy_in(pattern_map_, in_.num_tokens, tile);
      std::fill_n(inverse_sums, kMostLanes, 1.0f);
    }
    const int64_t z_stride = in_.num_heads * in_.head_dim;
    in_.products.mix(tile.scores, inverse_sums, tile.num_queries,
                     scratch_ + at_.values + tile.first_key * stride_, tile.num_keys, in_.head_dim,
                     stride_, in_.z + tile.first_query * z_stride + column_, z_stride);
  }

  const Kernels& kernels_ = kernels();
  const std::optional<AttentionStep> only_;
  const AttentionOperands& in_;
  float* const scores_map_;   // [T, T], or null
  float* const pattern_map_;  // [T, T], or null
  const int64_t head_, column_, kv_column_, stride_;
  float* const scratch_;
  const ScratchLayout& at_;
};

int64_t relative_rows_of(const AttentionOperands& in) {
  return in.positions.disentangled == nullptr ? 0 : in.positions.disentangled->num_rows();
}

}  // namespace

void attend(std::optional<AttentionStep> only, const Threads& threads,
            std::span<const AttentionOperands> all, const AttentionMaps& maps, float* scratch) {
  const AttentionOperands& longest =
      *std::ranges::max_element(all, {}, &AttentionOperands::num_tokens);
  const int64_t share = attention_scratch(longest);
  const int64_t heads = longest.num_heads, tasks = std::ssize(all) * heads;
  // A head's queries are divided where a thread would get few heads, and where its keys need no
  // more than to be packed anew for each part.
  const bool divided =
      tasks < 4 * threads.count() && threads.count() > 1 && !longest.positions.disentangled;
  const int64_t part = divided ? kPartQueries : round_up(longest.num_tokens, kPartQueries);
  const int64_t parts = (longest.num_tokens + part - 1) / part;
  threads.run(tasks * parts, [&](int64_t task, int thread) {
    const AttentionOperands& in = all[task / parts / heads];
    const int64_t begin = task % parts * part, lanes = kernels().tile_queries;
    const int64_t first = std::max(begin, in.first_query / lanes * lanes);
    const int64_t end = std::min(begin + part, in.end_query());
    if (first >= end) return;
    const ScratchLayout layout(in.num_tokens, in.head_dim, relative_rows_of(in));
    HeadAttention(only, in, maps, task / parts % heads, scratch + thread * share, layout)
        .run(first, end);
  });
}

void position_scores(const AttentionOperands& in, int64_t head, int64_t first_query,
                     int64_t num_queries, float* scratch, float* out) {
  const ScratchLayout layout(in.num_tokens, in.head_dim, relative_rows_of(in));
  HeadAttention({}, in, {}, head, scratch, layout)
      .write_positions(first_query, first_query + num_queries, out);
}

int64_t attention_scratch(const AttentionOperands& in) {
  return attention_scratch(in.num_tokens, in.head_dim, relative_rows_of(in));
}

int64_t attention_scratch(int64_t num_tokens, int64_t head_dim, int64_t relative_rows) {
  return round_up(ScratchLayout(num_tokens, head_dim, relative_rows).end, 16);
}

}  // namespace phasor::internal
