// Colours for numbers: two maps that colour-blind readers can follow, for figures and terminals.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "infer/render/matrix_view.h"

namespace infer {

enum class ColourMap {
  kSequential,  // viridis: dark blue to yellow, ever lighter
  kDiverging    // blue, white, red (ColorBrewer's RdBu), for numbers on both sides of zero
};

using Colour = std::array<uint8_t, 3>;  // red, green, blue

/// The colours a map is interpolated between, evenly spaced.
std::span<const Colour> anchors(ColourMap map);
/// The colour at `share` of the way from the first to the last, clipped to 0 … 1.
Colour colour_at(ColourMap map, double share);
/// "#21918c".
std::string hex(Colour colour);

/// What the ends of the map stand for: the range of the numbers, and for kDiverging the same
/// distance on both sides of zero.
Range colour_range(ColourMap map, std::span<const double> values);
/// Where `value` lies in `range`, 0 … 1; 1/2 where the range is a point, and for what is no number.
double share_of(Range range, double value);

}  // namespace infer
