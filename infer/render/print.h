// What was observed, on standard output.
#pragma once

#include <cstddef>
#include <span>

#include "infer/cli/terminal.h"
#include "infer/cli/view_options.h"

namespace infer {

/// One or two runs of text `number`, from 1: as JSON, CSV or text.
void print(std::span<const Observed> runs, size_t number, const CommonOptions& common,
           const ViewOptions& options, const Shown& shown, Output& output);

}  // namespace infer
