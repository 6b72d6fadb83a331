// Probes: whether a linear map can read the position off a hidden state.
//
// A probe is ridge regression from states x_i ∈ R^C to targets y_i, their positions, with centred
// columns and an intercept:
//
//     ŷ(x) = ȳ + ⟨w, x − x̄⟩,   w = (XᵀX + λI)⁻¹ Xᵀ(y − ȳ),   X = the rows x_i − x̄.
//
// λ is 10^k times the mean eigenvalue of XᵀX. k is chosen from −8 … 4 by cross-validation: probes
// fitted to two of every three texts predict the third (states instead of texts if there are fewer
// than three; of two equal k the larger), and the final probe is fitted to all texts. The folds are
// texts because the tokens of one text are related: λ chosen by tokens is too small for new texts.
// No held-out state is used in the choice.
//
// If a probe reads the position, the position is in the state; this does not show that the model
// uses it. So a probe is scored on texts it has not seen, and compared with baselines: the mean
// position; a probe fitted to permuted targets, which shows what chance gives; and, because words
// are frequent at certain places, a probe of the tokens' embeddings, which know the word alone
// (probe_token_embeddings()). The control task of Hewitt & Liang (2019, arXiv 1909.03368) gives
// each word a random place, the same wherever it stands: what a probe scores there, it has learned
// by heart. And it is scored in the interior alone: beside special tokens, which stand at the same
// places in every text, attention tells a word where it is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "phasor/encoder.h"
#include "phasor/progress.h"

namespace [[gnu::visibility("default")]] phasor {

/// States and the positions that a probe is to read off them.
struct ProbeData {
  std::vector<float> states;    // [n, C]
  std::vector<double> targets;  // [n]
  std::vector<int64_t> texts;   // [n], each state's text, ascending from 0; empty: each its own
  std::vector<int32_t> token_ids = {};  // [n], for the control task; empty: it is not made
  std::vector<bool> at_edges = {};      // [n]; empty: none is
};

/// A fitted ridge regression.
struct Probe {
  std::vector<double> weights;  // w, [C]
  std::vector<double> mean;     // x̄, [C]
  double intercept = 0;         // ȳ
  double lambda = 0;

  double predict(std::span<const float> state) const;  // [C]
};

/// For constant states or a single one it predicts the targets' mean. States are constant if Σ‖x −
/// x̄‖² is at most 1e-12 of Σ‖x‖², which is float32's rounding. Throws InvalidArgument if the sizes
/// do not fit or a target is not finite.
Probe fit_probe(const ProbeData& data, int64_t d_model);

/// How close predictions come to the targets.
struct ProbeScore {
  /// 1 − Σ(y − ŷ)² / Σ(y − ȳ)², where ȳ is the mean of these same y: 1 if all are exact, 0 if no
  /// better than their mean, below 0 if worse; 0 if all y are equal.
  double r2 = 0;
  double mean_absolute_error = 0;  // in positions
};

/// Throws as fit_probe().
ProbeScore score_probe(const Probe& probe, const ProbeData& data);

/// The scores of a probe, and of its two baselines.
struct ProbeReport {
  int64_t num_train = 0, num_held_out = 0;  // states
  double lambda = 0;
  ProbeScore train;
  ProbeScore held_out;
  ProbeScore mean;      // held out, always predicting the training targets' mean
  ProbeScore shuffled;  // held out, the same probe fitted to permuted training targets
  /// Held out, a probe that was fitted to the control task; NaN where one of both has no ids.
  ProbeScore control;
  /// Held out, of states that are at no edge, R² about their own mean; NaN where all are.
  ProbeScore interior;
};

/// Fits to `train` and scores on `held_out`, which should come from other texts. Throws as
/// fit_probe().
ProbeReport probe_positions(const ProbeData& train, const ProbeData& held_out, int64_t d_model,
                            uint64_t seed = 1);

/// A text, and the places of the tokens that a probe sees, such as all but the special ones.
struct ProbeText {
  std::vector<int32_t> token_ids;
  std::vector<int64_t> places;  // ascending
};

/// The held-out score of the same probe on each token's own embedding s·E[id], without position,
/// type, norm or context: how much of a position follows from which token it is. It is the baseline
/// of every layer. Throws as fit_probe(), and for a place outside its text or an id outside the
/// vocabulary.
ProbeScore probe_token_embeddings(const Model& model, std::span<const ProbeText> train,
                                  std::span<const ProbeText> held_out);

/// probe_positions() of each hidden_states[l], l = 0 … L: runs the texts and probes each state for
/// its token's place in the text, counted from 0. Places at most two from a token that the probe
/// does not see are edges. Keeps all states in memory, 4·C·(L + 1) bytes a
/// token, and probes layers in parallel on as many threads as the encoder has. `options.observer`
/// is not used. Throws as fit_probe() does and for a place outside its text, and what
/// Encoder::encode_ids() throws.
std::vector<ProbeReport> probe_positions(const Encoder& encoder, std::span<const ProbeText> train,
                                         std::span<const ProbeText> held_out,
                                         const RunOptions& options = {}, uint64_t seed = 1,
                                         const Progress& progress = {});

}  // namespace phasor
