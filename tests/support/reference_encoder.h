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

}  // namespace phasor::reference
