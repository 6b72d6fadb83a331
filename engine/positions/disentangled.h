// Disentangled attention (DeBERTa): the scores' terms of content with position.
#pragma once

#include <cstdint>
#include <vector>

#include "phasor/config.h"

namespace phasor::internal {

struct AttentionOperands;
struct ScorePositions;
struct ScoreTile;

/// A layer's keys and queries of the rows of the table of offsets; empty where the model does not
/// have their term.
struct RelativeRows {
  std::vector<float> keys;     // [2S, H·D], for content to position
  std::vector<float> queries;  // [2S, H·D], for position to content

  int64_t bytes() const {
    return (std::ssize(keys) + std::ssize(queries)) * int64_t{sizeof(float)};
  }
  static int64_t bytes(const DisentangledConfig& config, int64_t attention_width);
};

/// Which row of the table an offset takes. Immutable.
class Disentangled {
 public:
  explicit Disentangled(const DisentangledConfig& config);

  int64_t bytes() const { return std::ssize(row_of_) * int64_t{sizeof(int32_t)}; }
  static int64_t bytes(const DisentangledConfig& config);

  int64_t num_rows() const { return num_rows_; }  // 2S
  int64_t row_of(int64_t offset) const;           // of i − j

  /// Floats of scratch memory for a sequence and a head, where `rows` is num_rows().
  static int64_t scratch(int64_t rows, int64_t num_tokens, int64_t lanes, int64_t head_stride);
  /// Prepares a head, before its tiles: the products of every key with the queries of the table.
  void begin_head(const AttentionOperands& in, int64_t head, float* scratch) const;
  /// tile[j, i] += factor · scale · (q_i·K_r + k_j·Q_r), with r = row_of(p_i − p_j).
  void add_to(const ScoreTile& tile, const AttentionOperands& in, int64_t head,
              float* scratch) const;

 private:
  int64_t num_rows_;
  int64_t max_offset_;           // of row_of_; those beyond have the row of its ends
  std::vector<int32_t> row_of_;  // from −max_offset up
};

}  // namespace phasor::internal
