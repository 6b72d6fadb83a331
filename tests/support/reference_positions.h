// The oracle's half about positions: which windows a run is cut into, which vector each token
// receives, and what positions do to queries, keys and scores.
#pragma once

#include "tests/support/test.h"

namespace phasor::reference {

/// One column of one sinusoidal row, straight from the formulas of checkpoints and papers.
double sinusoid(SinusoidalLayout layout, double base, double position, int64_t d_model,
                int64_t column);

/// Where the position vectors of a run come from.
struct PositionSource {
  bool present = false;             // false: nothing is added
  std::optional<int64_t> num_rows;  // of a table; empty where rows are computed without end
  std::vector<double> table;        // [num_rows, C]
  SinusoidalLayout layout = SinusoidalLayout::kPaper;
  double base = 10000.0;
  int64_t first_position = 0;
  std::optional<int32_t> uncounted_token;

  /// The longest sequence that the table serves.
  std::optional<int64_t> max_tokens() const;
  /// The row at `position`, between two rows linearly where that is fractional. [C]
  std::vector<double> row(double position, int64_t d_model) const;
};

/// The mean of the rows that a text of the trained length gets. [C]
std::vector<double> mean_row(const PositionSource& source, const ModelConfig& config,
                             int64_t d_model);

PositionSource position_source(const Model& model, const Positions& positions);

/// Tokens first_token … first_token + token_ids.size() − 1 of a sequence, run by themselves.
struct Window {
  int64_t first_token = 0;
  std::vector<int32_t> token_ids;
  std::vector<double> positions;  // one for each token
};

/// One window, but under Overflow::kWindow. Throws InvalidArgument where the engine must.
std::vector<Window> plan_windows(const PositionSource& source, std::span<const int32_t> token_ids,
                                 const RunOptions& options);

/// How a layer rotates queries and keys in a run; empty where it does not. Throws InvalidArgument
/// where the engine must.
std::optional<RotaryConfig> rotation(const ModelConfig& config, const Positions& positions,
                                     int64_t layer);

/// Turns the row of one head, in a run of num_tokens tokens.
void rotate(const RotaryConfig& rotary, int64_t num_tokens, double position,
            std::span<double> head);

/// The factor of everything that positions do within attention.
double attention_scale(const Positions& positions);

/// Whether a query sees a key whose position is `offset` further.
bool sees(const ModelConfig& config, const Positions& positions, int64_t layer, double offset);

/// What is added to the score of a query and a key whose position is `offset` further.
double score_bias(const Model& model, const Positions& positions, int64_t head, double offset);

/// The row of DeBERTa's table for a query at position p + `offset` and a key at p.
int64_t disentangled_row(const DisentangledConfig& config, double offset);

}  // namespace phasor::reference
