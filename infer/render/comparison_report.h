// Two sides of a comparison next to each other: as tables for a terminal, and as JSON.
#pragma once

#include <array>
#include <string>

#include "infer/experiment/comparison.h"
#include "infer/render/terminal.h"

namespace infer {

struct Comparison {
  const Question& question;
  std::array<const Side*, 2> sides;
  std::array<SideReport, 2> reports;
  std::vector<Deviation> moved = {};  // [L + 1], by the second side's precision, where asked for
};

/// The second side's loss less the first's, mask by mask; empty where they did not score the same
/// masks.
std::optional<Estimate> loss_difference(const Comparison& comparison);

std::string to_text(const Comparison& comparison, const Output& output);
/// One line, without its end.
std::string to_json(const Comparison& comparison);

}  // namespace infer
