// infer embed --similarity: the cosines between the vectors of a few texts.
#pragma once

#include <string>
#include <vector>

#include "infer/cli/options.h"
#include "phasor/encoder.h"

namespace infer {

/// Prints them as a table, or as one JSON object; returns the exit code.
int print_similarities(phasor::Encoder& encoder, const phasor::EmbedOptions& how,
                       const std::vector<std::string>& texts, const CommonOptions& common);

}  // namespace infer
