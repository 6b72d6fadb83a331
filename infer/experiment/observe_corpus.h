// Observing the lines of a file as one: means over texts, and what only many texts can tell.
#pragma once

#include <span>
#include <string>

#include "infer/experiment/observation.h"

namespace infer {

/// Means over the texts of whatever the request asks for, and the measures of many texts:
/// kCorpusSplit and kProbe. `request.states` and the like are not used.
Observed observe_corpus(const Subject& subject, const std::string& file,
                        std::span<const Input> inputs, const Request& request, Progress& progress);

}  // namespace infer
