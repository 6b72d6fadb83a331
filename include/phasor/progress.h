// How long calls report their progress.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace [[gnu::visibility("default")]] phasor {

/// Called after each batch, on the caller's thread, with the number of sequences run so far and in
/// total. An exception from it ends the call.
using Progress = std::function<void(int64_t done, int64_t total)>;

/// The same of a call that has several stages, such as "orders" and "masked texts": with the name
/// of the stage, which is borrowed for the call.
using StageProgress = std::function<void(std::string_view stage, int64_t done, int64_t total)>;

}  // namespace phasor
