// What is observed: a model and how it is run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "infer/cli/input.h"
#include "infer/cli/progress.h"
#include "infer/experiment/deviation.h"
#include "phasor/encoder.h"
#include "phasor/trace.h"

namespace infer {

struct Subject {
  std::string name;          // of the model
  phasor::Encoder& encoder;  // borrowed
  phasor::RunOptions options = {};
  std::vector<std::string> edits = {};  // of options.positions, as the user wrote them

  const phasor::Model& model() const { return encoder.model(); }
};

/// One encoder in its one or two runs.
struct Runs {
  Subject before;
  std::optional<Subject> after;  // with the interventions
};

/// The hooks of all hidden states.
phasor::Trace hidden_states();

/// "1.attn", "2.mlp", "3": the residual connections that a run cuts, counting layers from 1.
std::vector<std::string> describe_cuts(std::span<const phasor::ResidualCut> cuts);

/// How far each hidden state of `got` is from that of `want`, [L + 1], over all inputs; `what` is
/// for the progress.
std::vector<Deviation> deviations(const Subject& got, const Subject& want,
                                  std::span<const Input> inputs, std::string_view what,
                                  Progress& progress);

/// The longest text seen in training that a run's positions reach, in tokens; empty where neither
/// the files nor a table say.
std::optional<int64_t> trained_length(const phasor::Encoder& encoder,
                                      const phasor::RunOptions& run);

}  // namespace infer
