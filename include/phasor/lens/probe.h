// Probes: whether a linear map can read the position off a hidden state.
//
// A probe is ridge regression from states x_i ∈ R^C to targets y_i, their positions, with centred
// columns and an intercept:
//
//     ŷ(x) = ȳ + ⟨w, x − x̄⟩,   w = (XᵀX + λI)⁻¹ Xᵀ(y − ȳ),   X = the rows x_i − x̄.
//
// λ is the one of 10^k·(mean eigenvalue of XᵀX), k = −10 … 3, with the least generalised
// cross-validation error n·‖y − ŷ‖² / (n − 1 − tr H)² on the states it is fitted to (Golub, Heath &
// Wahba 1979); H = X(XᵀX + λI)⁻¹Xᵀ. No held-out state has a say in it.
//
// That a probe reads the position says that it is there, not that the model uses it; and a probe
// may also read words that like certain places. So it is scored on texts that it has not seen, and
// beside two baselines (Hewitt & Liang 2019, arXiv 1909.03368, for such controls).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "phasor/encoder.h"
#include "phasor/lens/progress.h"

namespace phasor {

/// A fitted ridge regression.
struct Probe {
  std::vector<double> weights;  // w, [C]
  std::vector<double> mean;     // x̄, [C]
  double intercept = 0;         // ȳ
  double lambda = 0;

  double predict(std::span<const float> state) const;  // [C]
};

/// states [n, C], targets [n]. Of fewer states than 2 or constant ones: the mean. Throws
/// InvalidArgument where the sizes do not fit or a target is not finite.
Probe fit_probe(std::span<const float> states, std::span<const double> targets, int64_t d_model);

struct ProbeScore {
  /// 1 − Σ(y − ŷ)² / Σ(y − ȳ)², ȳ being the mean of these very y: 1 where all are read exactly, 0
  /// as good as knowing their mean, below 0 worse; 0 where all y are equal.
  double r2 = 0;
  double mean_absolute_error = 0;  // in positions
};

/// states [n, C], targets [n].
ProbeScore score_probe(const Probe& probe, std::span<const float> states,
                       std::span<const double> targets);

/// States and the positions that a probe shall read off them.
struct ProbeData {
  std::vector<float> states;    // [n, C]
  std::vector<double> targets;  // [n]
};

struct ProbeReport {
  int64_t num_train = 0, num_held_out = 0;  // states
  double lambda = 0;
  ProbeScore train;
  ProbeScore held_out;
  ProbeScore mean;      // held out, of always predicting the training targets' mean
  ProbeScore shuffled;  // held out, of the same probe fitted to shuffled training targets
};

/// Fits to `train` and scores on `held_out`, which should come from other texts: tokens of one text
/// know each other. Throws as fit_probe().
ProbeReport probe_positions(const ProbeData& train, const ProbeData& held_out, int64_t d_model,
                            uint64_t seed = 1);

/// The same for each hidden_states[l], l = 0 … L: runs the texts of `train` and `held_out`, and
/// reads from each token its place in the text, counted from 0. Places are listed for each text;
/// special tokens, left out of them, are not read. Holds the states of all tokens in memory:
/// 4·C·(L + 1) bytes a token.
struct ProbeText {
  std::vector<int32_t> token_ids;
  std::vector<int64_t> places;
};
std::vector<ProbeReport> probe_positions(Encoder& encoder, std::span<const ProbeText> train,
                                         std::span<const ProbeText> held_out,
                                         const RunOptions& options = {}, uint64_t seed = 1,
                                         const Progress& progress = {});

}  // namespace phasor
