// What this program has computed, for tests of what may not take long.
#pragma once

#include <ctime>

namespace phasor {

/// Of the processor's time, not of the clock's: a busy machine changes little.
inline double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace phasor
