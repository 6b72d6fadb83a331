#include "engine/workspace.h"

#include <algorithm>
#include <utility>

#include "engine/linear.h"

namespace phasor::internal {

/// The buffers of a group of so many rows in floats, without those for hooks and rotations.
struct Room {
  Room(const ModelConfig& config, int64_t rows, int64_t longest, int threads)
      : model(aligned(rows * std::max(config.d_model, config.embedding_width()))),
        heads(aligned(rows * config.attention_width())),
        qkv(aligned(rows * (config.attention_width() + 2 * config.kv_width()))),
        mlp(aligned(rows * config.d_ff)),
        wide(std::max(qkv, mlp)),
        gate(config.gated_mlp ? mlp : 0) {
    const auto& relative = config.position.disentangled;
    const int64_t relative_rows = relative ? 2 * relative->num_buckets : 0;
    attention = threads * attention_scratch(longest, config.head_dim(), relative_rows);
  }
  static int64_t aligned(int64_t count) {
    constexpr int64_t kCacheLine = 16;  // floats
    return (count + kCacheLine - 1) / kCacheLine * kCacheLine;
  }
  int64_t total() const { return 3 * model + heads + wide + gate + attention; }

  int64_t model, heads, qkv, mlp, wide, gate, attention;
};

int64_t floats_per_token(const ModelConfig& config, int threads) {
  constexpr int64_t kTokens = 1024;
  return Room(config, kTokens, kTokens, threads).total() / kTokens;
}

void Workspace::prepare(const Threads& threads, const Group& group, const ModelConfig& config,
                        const Rotation* rotation, const Watch& watch) {
  threads_ = threads;
  steps_->prepare(threads, group.num_rows);
  const int64_t num_rows = steps_->padded(group.num_rows);
  const Room room(config, num_rows, group.max_tokens, threads.count());
  const int64_t turned =
      rotation == nullptr ? 0
                          : Room::aligned(rotation->num_tables() * num_rows * rotation->row_size());
  const int64_t map = Room::aligned(config.num_heads * group.max_tokens * group.max_tokens);
  const bool changes = watch.changes_anywhere(Hook::kAttnScores) ||
                       watch.changes_anywhere(Hook::kPattern);  // which takes both
  const int64_t scores = changes || watch.wants_anywhere(Hook::kAttnScores) ? map : 0;
  const int64_t pattern = changes || watch.wants_anywhere(Hook::kPattern) ? map : 0;
  float* next = buffer_.reserve(room.total() + turned + scores + pattern);
  const auto take = [&](int64_t count) { return std::exchange(next, next + count); };
  float* const x = take(room.model);
  float* const normed = take(room.model);
  float* const qkv_or_mlp = take(room.wide);
  activations_ = {.num_rows = num_rows,
                  .x = x,
                  .normed = normed,
                  .qkv = qkv_or_mlp,
                  .z = take(room.heads),
                  .out = take(room.model),
                  .mlp = qkv_or_mlp,
                  .gate = take(room.gate),
                  .rotation = take(turned),
                  .attention = take(room.attention),
                  .maps = {.scores = scores > 0 ? take(scores) : nullptr,
                           .pattern = pattern > 0 ? take(pattern) : nullptr}};
}

}  // namespace phasor::internal
