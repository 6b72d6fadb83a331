// The table of views: everything about a measure that is not measuring stands in a row of views.cc.
// Terminal, JSON, CSV, --only and the page read that row.
#pragma once

#include <string>
#include <string_view>

#include "phasor/lens/observe.h"

namespace phasor::internal {

/// Throws std::out_of_range for a name that none has: a mistake of the program.
const lens::View& view(std::string_view name);

/// What to say of views that need a text by itself, a second run, several texts as one, or lines
/// whose tokens are masked; null where there is such a thing.
struct Lacks {
  const char *text = nullptr, *second_run = nullptr, *texts = nullptr, *lines = nullptr;
};
/// Of all that a view of such needs lacks, the first; null where it can be measured.
const char* lacking(lens::Needs needs, const Lacks& lacks);

/// A column's key as people write it: "token_r2" is "token R²", and an offset has a sign.
std::string label_of(const lens::Column& column);

/// 0.157; where nothing but zeros would show, how small it is: "3e-04", and "<1e-5" for what may be
/// rounding.
std::string small_number(double value, int decimals = 3);
/// A number of a column; of many decimals, as small_number() has it.
std::string number_text(double value, const lens::Column& column);

}  // namespace phasor::internal
