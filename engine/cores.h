// How many cores a process may use.
#pragma once

#include <optional>
#include <string>

namespace phasor::internal {

/// The least CPU quota of the process's control group and its parents, in cores; empty: there is
/// none. Reads ROOT/proc/self and the files of the hierarchies that it names, below ROOT, too.
/// Files that are absent or malformed set no quota.
std::optional<double> cpu_quota(const std::string& root = "");

/// The cores in the calling thread's affinity, but no more than the quota, rounded up. At least 1.
/// Reads files, so it is called once for an Encoder.
int num_cores();

}  // namespace phasor::internal
