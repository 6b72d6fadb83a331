// Rotary positions: queries and keys turn by angles that grow with their position.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "phasor/config.h"

namespace phasor::internal {

class Threads;

/// The rotations of a model: a table for each base that its layers have. Rows of whole positions
/// are kept, because computing cosines is slow. A row has 2·dims values: a factor for each column,
/// then a factor for the other column of its pair.
class Rotation {
 public:
  /// The rotation of the model's own layers. Requires position.rotary.
  explicit Rotation(const ModelConfig& config);
  /// The same rotation of whole heads, in halves, for all layers.
  Rotation(const ModelConfig& config, double base);

  int64_t num_tables() const { return static_cast<int64_t>(tables_.size()); }
  int64_t table_of(int64_t layer) const { return table_of_[layer]; }
  int64_t row_size() const { return 2 * dims_; }
  bool interleaved() const { return config_.interleaved; }
  /// P [dims, dims]: x·P swaps the columns of each pair of x.
  std::vector<float> swaps() const;
  /// ω_i of a layer's pairs of columns in a sequence of so many tokens, [dims / 2].
  std::vector<double> frequencies_of(int64_t layer, int64_t num_tokens) const {
    return frequencies(tables_[table_of_[layer]].base, num_tokens);
  }

  /// Keeps the rows of positions first … end − 1; nothing if `first` differs from the first call's.
  void extend(int64_t first, int64_t end);
  /// Writes the rows of a sequence's positions, whose angles are multiplied by `scale`: [T,
  /// row_size]. Thread-safe.
  void rows(int64_t table, std::span<const double> positions, double scale, float* out) const;

  /// Turns num_heads heads of head_dim columns in place, in rows that are `stride` apart, by `rows`
  /// [T, row_size].
  void turn(const Threads& threads, const float* rows, int64_t num_tokens, int64_t stride,
            int64_t num_heads, int64_t head_dim, float* x) const;

 private:
  struct Table {
    double base;
    std::vector<double> frequencies;  // [dims / 2]
    std::vector<float> rows;          // [kept, row_size]
  };
  std::vector<double> frequencies(double base, int64_t num_tokens) const;
  std::pair<int64_t, int64_t> pair(int64_t i) const;  // its columns
  void write_row(std::span<const double> frequencies, double position, float* row) const;

  RotaryConfig config_;
  int64_t dims_;
  std::vector<Table> tables_;
  std::vector<int64_t> table_of_;  // [num_layers]
  int64_t first_ = 0;              // the position of the first row kept
};

}  // namespace phasor::internal
