// What was observed, as CSV.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "infer/cli/study.h"

namespace infer {

/// Every number in a line of its own: text,run,layer,head,measure,value. Texts and heads count from
/// 1, layer 0 is the embedding; a measure is VIEW.COLUMN, in named rows VIEW.ROW.COLUMN.
std::string csv_head();
std::string to_csv(std::span<const Observed> runs, size_t number);

}  // namespace infer
