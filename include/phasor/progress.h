// How long calls tell how far they are.
#pragma once

#include <cstdint>
#include <functional>

namespace [[gnu::visibility("default")]] phasor {

/// Told after each batch, on the caller's thread, how many of how many sequences have been run.
/// What it throws ends the call.
using Progress = std::function<void(int64_t done, int64_t total)>;

}  // namespace phasor
