// What is done to a run for the sake of seeing what happens: --edit and --cut-residual.
#pragma once

#include <string>
#include <vector>

#include "infer/cli/command_line.h"
#include "phasor/encoder.h"

namespace infer {

struct Interventions {
  std::vector<std::string> edits;  // of the positions, as the user wrote them, in order
  std::vector<std::string> cuts;   // LAYER[.attn|.mlp], layers counted from 1

  bool any() const { return !edits.empty() || !cuts.empty(); }
};

void add_interventions(CommandLine& line, Interventions& interventions);

/// `run` with the interventions. Throws UsageError for what is none, and InvalidArgument for a
/// layer that `config` does not have or a table that cannot be read.
phasor::RunOptions intervened(const phasor::RunOptions& run, const Interventions& interventions,
                              const phasor::ModelConfig& config);

}  // namespace infer
