// The positions of one run: the row of each token and the vector of each row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/positions/offset_bias.h"
#include "engine/positions/rotary.h"
#include "phasor/model.h"
#include "phasor/positions.h"

namespace phasor::internal {

/// A sinusoidal table that keeps some rows, because computing sines is slow.
class SinusoidTable {
 public:
  SinusoidTable(SinusoidalLayout layout, double base, int64_t width)
      : pairs_(column_pairs(layout, width, base)), width_(width) {}

  /// Keeps the rows of positions first … end − 1: as many as a sequence has tokens, for any start.
  /// Keeps nothing if `first` differs from the first call's.
  void extend(int64_t first, int64_t end);
  /// Writes row `position` [C]; computes it if it is not kept.
  void copy_row(double position, float* out) const;

 private:
  std::vector<ColumnPair> pairs_;
  int64_t width_;
  int64_t first_ = 0;        // the position of the first row kept
  std::vector<float> rows_;  // [num_rows, C]
};

/// Tables of a model's own positions, kept between runs.
struct PositionTables {
  explicit PositionTables(const ModelConfig& config);

  SinusoidTable sinusoids;
  std::optional<Rotation> rotation;
};

/// Combines a model's position config with a run's Positions. Borrows its arguments.
class PositionSource {
 public:
  /// place() extends `own`. Throws InvalidArgument if the run needs something that the model lacks,
  /// or has another width.
  PositionSource(const Model& model, const Positions& positions, PositionTables& own);

  PositionSource(const PositionSource&) = delete;
  PositionSource& operator=(const PositionSource&) = delete;

  /// Whether vectors are added to the embedding.
  bool adds() const { return kind_ != PositionKind::kNone; }
  /// Whether the model's own bias and disentangled terms are added to the scores.
  bool is_own() const { return run_.source() == Positions::Source::kModel; }
  /// The run's own bias, in place of the model's; null if there is none.
  const OffsetBias* bias() const { return bias_ ? &*bias_ : nullptr; }
  /// How queries and keys are turned; null if they are not.
  const Rotation* rotation() const { return rotation_; }
  /// See LayerAttention; 0 also if positions have no effect.
  int64_t window(int64_t layer) const;
  /// Whether a query sees its own and earlier tokens alone.
  bool is_causal() const {
    return run_.mask() == AttentionMask::kModel ? config_.causal
                                                : run_.mask() == AttentionMask::kCausal;
  }
  /// Whether positions or a mask do anything within a layer's attention.
  bool acts_on_scores(int64_t layer) const;
  /// By which everything is multiplied that positions do within attention.
  float attention_scale() const { return run_.is_averaged() ? 0.0f : run_.scale(); }
  /// The longest sequence whose positions are all in the table; empty if there is no table.
  std::optional<int64_t> max_tokens() const;

  /// The position of every token: from first_position on, then the run's edits, then the overflow
  /// policy (kClamp or kInterpolate). [T]. Throws InvalidArgument for a position outside the table.
  std::vector<double> place(std::span<const int32_t> token_ids, Overflow overflow);

  /// Writes the vector of each position: positions [T] -> out [T, C]. Thread-safe.
  void rows(std::span<const double> positions, float* out) const;

 private:
  void use_model(const Model& model, PositionTables& own);
  void use_sinusoids(const PositionConfig& own);
  void apply_edits(std::vector<double>& positions) const;
  void interpolate(std::vector<double>& positions) const;
  void check(const std::vector<double>& positions) const;
  void row(double position, float* out) const;
  void table_row(double position, float* out) const;
  std::vector<float> mean_of_rows() const;
  double last_row() const { return static_cast<double>(*num_rows_ - 1); }

  const ModelConfig& config_;
  const Positions& run_;
  int64_t width_;
  PositionKind kind_ = PositionKind::kNone;
  int64_t first_position_ = 0;
  std::optional<int32_t> uncounted_token_;
  std::optional<int64_t> num_rows_;  // of a table with an end
  // One of these two holds the vectors.
  const Tensor* stored_ = nullptr;  // the checkpoint's table or run_table_,
  Tensor run_table_;
  SinusoidTable* sinusoids_ = nullptr;  // or the model's sinusoids or run_sinusoids_
  std::optional<SinusoidTable> run_sinusoids_;
  std::vector<float> mean_row_;  // [C], for every token of an averaged run; else empty
  std::optional<OffsetBias> bias_;
  Rotation* rotation_ = nullptr;  // the model's or run_rotation_
  std::optional<Rotation> run_rotation_;
};

}  // namespace phasor::internal
