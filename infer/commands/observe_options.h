// What infer observe was asked to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "infer/cli/interventions.h"
#include "infer/cli/text_options.h"
#include "infer/experiment/observation.h"
#include "infer/views/observe_view.h"

namespace infer {

struct ObserveOptions {
  TextOptions texts;
  Interventions interventions;
  Shown shown;
  std::string html;
  std::string file;  // whose lines are observed as one; empty: there is none
  uint64_t seed = 1;
  bool csv = false;

  bool prints_tables() const { return !csv && !texts.common.json; }
};

/// The exit code where the arguments say all there is to do. Throws UsageError.
std::optional<int> parse_observe(int argc, char** argv, ObserveOptions& options);

/// Throws InvalidArgument where the model has no such head.
void check_head(const Shown& shown, const phasor::ModelConfig& config);

/// What must be measured for the views.
Request request_for(const ObserveOptions& options);

}  // namespace infer
