// What was observed, as text for a terminal.
#pragma once

#include <span>
#include <string>

#include "infer/cli/study.h"
#include "infer/cli/terminal.h"
#include "infer/render/table_text.h"

namespace infer {

/// One or two runs of a text, or of many: tokens, sentences, and a table for each view.
std::string to_text(std::span<const Observed> runs, const Shown& shown, const Output& output);
/// A text in one table: what a plain run shows.
std::string to_short_text(const Observed& text, const Output& output);
/// Two runs in few lines: sentences, and a row for each view.
std::string to_overview(std::span<const Observed> runs, const Shown& shown, const Output& output);

}  // namespace infer
