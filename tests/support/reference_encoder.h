// The oracle: the encoder's arithmetic in naive loops and double, without oneDNN, for every
// configuration the engine supports. Slow, plain, and independent of engine/.
#pragma once

#include "tests/support/test.h"

namespace phasor::reference {

/// f(x).
double activate(Activation activation, double x);

struct Array {
  std::vector<int64_t> shape;
  std::vector<double> values;  // row-major
};

/// Everything that passed the hooks, by hook and layer (−1 outside blocks).
using Activations = std::map<std::pair<Hook, int64_t>, Array>;

/// One run of the network over (a part of) a sequence.
struct WindowResult {
  int64_t first_token = 0;
  std::vector<double> positions;  // [T]
  std::vector<double> hidden;     // [T, C]
  Activations activations;
};

/// One sequence's result.
struct Result {
  std::vector<int32_t> token_ids;
  std::vector<double> hidden;  // [T, C]: the mean over the windows that cover a token
  std::vector<WindowResult> windows;
};

/// How the weights and the inputs of linear maps are rounded before they are multiplied.
struct Rounding {
  Precision precision = Precision::kFloat32;  // the others are rounded to; never kAuto
  int steps = 254;         // of int8 inputs: from their least value, or 0, to their largest, or 0
  bool symmetric = false;  // the least is −1 times the largest
  bool attention = false;  // whether the factors of attention's products are bfloat16 as well:
  bool late = false;  // queries before they are scaled (but in disentangled terms), and weights
                      // after their division by the sum
};

/// Encodes one sequence. `options.observer` is ignored: every hook is recorded. `num_keys` above 0:
/// no token attends to those behind the first so many.
Result encode(const Model& model, std::span<const int32_t> token_ids,
              const RunOptions& options = {}, const Rounding& rounding = {}, int64_t num_keys = 0);

/// x Wᵀ + b for x [T, in]: [T, out].
std::vector<double> linear(const LinearWeights& weights, std::span<const double> x,
                           const Rounding& rounding = {});

/// The rows of the model's disentangled positions, after their norm where they have one: [2S, C].
std::vector<double> relative_table(const Model& model);

/// The nearest bfloat16, the even one of two.
double to_bfloat16(double x);

/// The logits of the labels for one sequence's last hidden states [T, C].
std::vector<double> classifier_logits(const Model& model, std::span<const double> hidden);

/// Scores over the vocabulary, [n, V], for `hidden` [n, C].
std::vector<double> mlm_logits(const Model& model, std::span<const double> hidden);

// Its half about positions: which windows a run is cut into, which vector each token receives, and
// what positions do to queries, keys and scores.

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

/// How a layer rotates queries and keys; empty where it does not. Throws where the engine must.
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
