// The table of views: everything about a measure that is not measuring stands in a row of views.cc.
// Terminal, JSON, CSV, --only and the page read that row.
#pragma once

#include <string>
#include <string_view>

#include "phasor/lens/observe.h"

namespace phasor::internal {

/// Throws std::out_of_range for a name that none has: a mistake of the program.
const lens::View& view(std::string_view name);

inline bool needs_file(lens::Needs needs) {
  return needs == lens::Needs::kFile || needs == lens::Needs::kTwoRunsOfFile;
}

/// A column's key as people write it: "token_r2" is "token R²", and an offset has a sign.
std::string label_of(const lens::Column& column);

}  // namespace phasor::internal
