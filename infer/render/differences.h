// What is different in two runs, as text for a terminal.
#pragma once

#include <span>
#include <string>

#include "infer/cli/study.h"
#include "infer/cli/terminal.h"
#include "infer/render/table_text.h"

namespace infer {

/// Two runs in few lines: sentences, and a row for each view.
std::string to_overview(std::span<const Observed> runs, const Shown& shown, const Output& output);

}  // namespace infer
