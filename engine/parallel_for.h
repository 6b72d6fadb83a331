// A loop over OpenMP's threads whose body may throw.
#pragma once

#include <cstdint>
#include <functional>

namespace phasor::internal {

/// body(i) for i = 0 … count − 1, in any order, on up to `threads` threads. If bodies throw, the
/// exception of the smallest i is rethrown after all have run.
void parallel_for(int64_t count, int threads, const std::function<void(int64_t i)>& body);

}  // namespace phasor::internal
