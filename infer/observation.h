// Observing texts: a batch of them, run as asked and in every other way that its measures need.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "infer/deviation.h"
#include "infer/observed.h"
#include "infer/progress.h"
#include "phasor/encoder.h"

namespace infer {

/// A model and how it is run.
struct Subject {
  std::string name;          // of the model
  phasor::Encoder& encoder;  // borrowed
  phasor::RunOptions options = {};
  std::vector<std::string> edits = {};  // of options.positions, as the user wrote them

  const phasor::Model& model() const { return encoder.model(); }
};

struct Request {
  std::vector<Measure> measures = {};
  uint64_t seed = 1;      // for what is drawn, of the first text; the next one has the next number
  bool states = false;    // keep them in Observed::states,
  bool patterns = false;  // these (4·H·T² bytes a layer),
  bool arrays = false;    // and the split's position_means

  bool asks(Measure measure) const;
};

/// Observes the inputs as one batch. `options.observer` is not used. Throws what encoding throws.
std::vector<Observed> observe_texts(const Subject& subject, std::span<const Input> inputs,
                                    const Request& request, Progress& progress);

/// How far each hidden state of `got` is from that of `want`, [L + 1], over all inputs; `what` is
/// for the progress.
std::vector<Deviation> deviations(const Subject& got, const Subject& want,
                                  std::span<const Input> inputs, std::string_view what,
                                  Progress& progress);

/// The longest text seen in training that a run's positions reach, in tokens; empty where neither
/// the files nor a table say.
std::optional<int64_t> trained_length(const phasor::Encoder& encoder,
                                      const phasor::RunOptions& run);

/// A split without its arrays.
ObservedSplit summary_of(const phasor::Split& split, int64_t d_model);

/// The hooks of all hidden states.
phasor::Trace hidden_states();

/// "1.attn", "2.mlp", "3": the residual connections that a run cuts, counting layers from 1.
std::vector<std::string> describe_cuts(std::span<const phasor::ResidualCut> cuts);

}  // namespace infer
