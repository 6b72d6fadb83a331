// What was observed, on standard output and as CSV.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "infer/cli/terminal.h"
#include "infer/cli/view_options.h"

namespace infer {

/// One or two runs of text `number`, from 1: as JSON, CSV or text.
void print(std::span<const Observed> runs, size_t number, const CommonOptions& common,
           const ViewOptions& options, const Shown& shown, Output& output);

/// Every number in a line of its own: text,run,layer,head,measure,value. Texts and heads count from
/// 1, layer 0 is the embedding; a measure is VIEW.COLUMN, in named rows VIEW.ROW.COLUMN.
std::string csv_head();
std::string to_csv(std::span<const Observed> runs, size_t number);

}  // namespace infer
