// Colours for numbers.
#include "infer/render/colour_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace infer {

std::span<const Colour> anchors(ColourMap map) {
  static constexpr std::array<Colour, 9> kViridis = {{{68, 1, 84},
                                                      {71, 45, 123},
                                                      {59, 82, 139},
                                                      {44, 114, 142},
                                                      {33, 145, 140},
                                                      {40, 174, 128},
                                                      {94, 201, 98},
                                                      {173, 220, 48},
                                                      {253, 231, 37}}};
  static constexpr std::array<Colour, 11> kBlueRed = {{{5, 48, 97},
                                                       {33, 102, 172},
                                                       {67, 147, 195},
                                                       {146, 197, 222},
                                                       {209, 229, 240},
                                                       {247, 247, 247},
                                                       {253, 219, 199},
                                                       {244, 165, 130},
                                                       {214, 96, 77},
                                                       {178, 24, 43},
                                                       {103, 0, 31}}};
  if (map == ColourMap::kDiverging) return kBlueRed;
  return kViridis;
}

Colour colour_at(ColourMap map, double share) {
  const std::span<const Colour> colours = anchors(map);
  const auto last = static_cast<double>(colours.size() - 1);
  const double place = std::clamp(share, 0.0, 1.0) * last;
  const auto i = static_cast<size_t>(std::min(place, last - 1));
  Colour colour;
  for (size_t c = 0; c < colour.size(); ++c) {
    const double from = colours[i][c], to = colours[i + 1][c];
    colour[c] =
        static_cast<uint8_t>(std::lround(from + (to - from) * (place - static_cast<double>(i))));
  }
  return colour;
}

std::string hex(Colour colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour[0], colour[1], colour[2]);
}

Range colour_range(ColourMap map, std::span<const double> values) {
  const Range range = range_of(values);
  if (map == ColourMap::kSequential) return range;
  const double size = std::max(std::abs(range.low), std::abs(range.high));
  return {-size, size};
}

double share_of(Range range, double value) {
  if (!(range.high > range.low) || !std::isfinite(value)) return 0.5;
  return std::clamp((value - range.low) / (range.high - range.low), 0.0, 1.0);
}

}  // namespace infer
