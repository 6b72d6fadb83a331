// What runs tell in sentences, and where two of them differ.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "phasor/lens/observe.h"

namespace phasor::internal {

/// How sure it is that two numbers differ; the surer, the later.
enum class Certainty {
  kSame,       // but for rounding
  kNotTold,    // no interval over texts tells them apart
  kUntrained,  // by no more than with random weights
  kDiffers
};

/// A view's leading column in two runs.
struct Difference {
  const lens::View* view = nullptr;
  Certainty certainty = Certainty::kSame;
  lens::Row place = {};  // where they surely differ most, above the embedding if there; no cells
  std::array<double, 2> there = {};      // in both runs
  std::array<double, 2> untrained = {};  // in their untrained models; NaN where there are none
  double excess = 0;                     // |a − b| less that of untrained models
  std::array<double, 2> mean = {};       // over rows
};

/// Of each view that both of the first two runs have, but those of heads. The third and fourth run,
/// where there are any, are those of untrained models.
std::vector<Difference> differences(std::span<const lens::Observed> runs,
                                    std::span<const lens::View* const> views);

struct Conclusion {
  std::string sentence = {};                  // empty: there is advice alone
  std::vector<const lens::View*> views = {};  // that show it
  std::string advice = {};                    // for who uses the command line
};

/// Of one run at most three, what its views say of themselves. Of two at most six: how far apart
/// the states are, what is alike, which numbers differ most and which not, what would tell more.
std::vector<Conclusion> conclusions(std::span<const lens::Observed> runs,
                                    std::span<const lens::View* const> views);

/// What positions do to the tokens of two texts, the same in two orders, of the second
/// (Observed::apart); empty where there are none.
std::string say_pair(const lens::Observed& second);

/// What the leading column holds: "Order sensitivity (shuffle)".
std::string lead_name(const lens::View& view);

}  // namespace phasor::internal
