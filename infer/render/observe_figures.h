// What infer observe measures, as figures for a paper.
#pragma once

#include <string>

#include "infer/render/figure_folder.h"
#include "infer/views/observe_view.h"

namespace infer {

/// Writes NAME-VIEW.svg for each view that there is something to draw of, before and after in one
/// frame or as NAME-VIEW-before.svg and NAME-VIEW-after.svg; NAME-distances.svg shows the position
/// vectors that were added.
void write_figures(const ObservedPair& pair, const Shown& shown, const std::string& name,
                   const FigureFolder& folder);

}  // namespace infer
