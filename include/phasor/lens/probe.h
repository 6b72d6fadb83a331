// Probes: whether a linear map can read the position off a hidden state.
//
// A probe is ridge regression from states x_i ∈ R^C to targets y_i, their positions, with centred
// columns and an intercept:
//
//     ŷ(x) = ȳ + ⟨w, x − x̄⟩,   w = (XᵀX + λI)⁻¹ Xᵀ(y − ȳ),   X = the rows x_i − x̄.
//
// λ is 10^k times the mean eigenvalue of XᵀX. Of k = −8 … 4 that one is taken with which a probe
// of two in every three texts best predicts the third (of two the larger; of states, where there
// are fewer than three texts); the probe is then fitted to all with it. By texts, because the
// tokens of one know each other: λ chosen by tokens is too small for texts that are new. No
// held-out state has a say in it.
//
// That a probe reads the position says that it is there, not that the model uses it; and a probe
// may also read words that like certain places. So it is scored on texts that it has not seen, and
// beside two baselines (Hewitt & Liang 2019, arXiv 1909.03368, for such controls).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "phasor/encoder.h"
#include "phasor/progress.h"

namespace [[gnu::visibility("default")]] phasor {

/// States and the positions that a probe shall read off them.
struct ProbeData {
  std::vector<float> states;    // [n, C]
  std::vector<double> targets;  // [n]
  std::vector<int64_t> texts;   // [n], which text each is from, ascending from 0; empty: its own
};

/// A fitted ridge regression.
struct Probe {
  std::vector<double> weights;  // w, [C]
  std::vector<double> mean;     // x̄, [C]
  double intercept = 0;         // ȳ
  double lambda = 0;

  double predict(std::span<const float> state) const;  // [C]
};

/// Of constant states or a single one: the targets' mean. States are constant where Σ‖x − x̄‖² is no
/// more than 1e-12 of Σ‖x‖², which is float32's rounding. Throws InvalidArgument where the sizes do
/// not fit or a target is not finite.
Probe fit_probe(const ProbeData& data, int64_t d_model);

struct ProbeScore {
  /// 1 − Σ(y − ŷ)² / Σ(y − ȳ)², ȳ being the mean of these very y: 1 where all are read exactly, 0
  /// as good as knowing their mean, below 0 worse; 0 where all y are equal.
  double r2 = 0;
  double mean_absolute_error = 0;  // in positions
};

/// Throws as fit_probe().
ProbeScore score_probe(const Probe& probe, const ProbeData& data);

struct ProbeReport {
  int64_t num_train = 0, num_held_out = 0;  // states
  double lambda = 0;
  ProbeScore train;
  ProbeScore held_out;
  ProbeScore mean;      // held out, of always predicting the training targets' mean
  ProbeScore shuffled;  // held out, of the same probe fitted to shuffled training targets
};

/// Fits to `train` and scores on `held_out`, which should come from other texts. Throws as
/// fit_probe().
ProbeReport probe_positions(const ProbeData& train, const ProbeData& held_out, int64_t d_model,
                            uint64_t seed = 1);

/// A text, and the places of the tokens that a probe sees, say all but special ones.
struct ProbeText {
  std::vector<int32_t> token_ids;
  std::vector<int64_t> places;
};

/// The same for each hidden_states[l], l = 0 … L: runs the texts and reads from each state its
/// token's place in the text, counted from 0. Keeps all states in memory, 4·C·(L + 1) bytes a
/// token, and probes layers side by side on as many threads as the encoder has. `options.observer`
/// is not used. Throws as above, for a place outside its text, and what Encoder::encode_ids throws.
std::vector<ProbeReport> probe_positions(Encoder& encoder, std::span<const ProbeText> train,
                                         std::span<const ProbeText> held_out,
                                         const RunOptions& options = {}, uint64_t seed = 1,
                                         const Progress& progress = {});

}  // namespace phasor
