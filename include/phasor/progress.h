// How long calls report their progress.
#pragma once

#include <cstdint>
#include <functional>

namespace [[gnu::visibility("default")]] phasor {

/// Called after each batch, on the caller's thread, with the number of sequences run so far and in
/// total. An exception from it ends the call.
using Progress = std::function<void(int64_t done, int64_t total)>;

}  // namespace phasor
