// Scaled dot-product attention over the tokens of one sequence (Vaswani et al. 2017, §3.2.1).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/kernels/kernels.h"
#include "engine/positions/score_positions.h"
#include "engine/team.h"

namespace phasor::internal {

/// One sequence's attention in all heads: z = softmax(scale·Q·Kᵀ + what positions add)·V. Heads lie
/// side by side in a row: q and z [T, H, D], k and v [T, G, D], see ModelConfig::num_kv_heads.
/// Borrowed.
struct AttentionOperands {
  const AttentionProducts& products;
  const float* q;
  const float* k;
  const float* v;
  float* z;
  int64_t stride;  // from one token's q, k or v to the next one's
  int64_t num_tokens;
  int64_t num_heads;
  int64_t head_dim;
  float scale;              // of the scores
  float cap = 0;            // see ModelConfig::score_cap
  int64_t group_heads = 1;  // H / G
  /// z is computed for these queries and some beside them. num_queries 0: all.
  int64_t first_query = 0, num_queries = 0;
  ScorePositions positions;

  int64_t kv_head(int64_t head) const { return head / group_heads; }
  int64_t end_query() const { return num_queries > 0 ? first_query + num_queries : num_tokens; }
};

/// The maps an observer wants; null if it does not.
struct AttentionMaps {
  float* scores = nullptr;   // [H, T, T]
  float* pattern = nullptr;  // [H, T, T]
};

/// The steps of attention. The maps lie between them.
enum class AttentionStep { kScores, kSoftmax, kMix };

/// Attention of several sequences, a tile of a head's queries at a time: the scores of a tile stay
/// in the first-level cache. The only step of the encoder that mixes rows. A token's result depends
/// only on its sequence. Threads share sequences, heads and, where these are few, queries;
/// `scratch` has attention_scratch() floats of the longest sequence for each. `only`: one step
/// alone, from the map before it to the map after it, or to z. Maps are of a single sequence.
void attend(std::optional<AttentionStep> only, const Threads& threads,
            std::span<const AttentionOperands> all, const AttentionMaps& maps, float* scratch);

/// What positions add to the scores of some of a head's queries: [num_queries, T], −∞ for keys that
/// a query does not see. `scratch` is that of the thread.
void position_scores(const AttentionOperands& in, int64_t head, int64_t first_query,
                     int64_t num_queries, float* scratch, float* out);

/// For sequences of up to num_tokens; relative_rows: Disentangled::num_rows(), or 0.
int64_t attention_scratch(int64_t num_tokens, int64_t head_dim, int64_t relative_rows);
int64_t attention_scratch(const AttentionOperands& in);

}  // namespace phasor::internal
