// The most memory that this process had resident.
#pragma once

#include <cstdint>

namespace infer {

/// Forgets earlier peaks, where the system can: else the peak is that of the whole process.
void reset_peak_memory();
/// Since then, in bytes.
int64_t peak_memory();

}  // namespace infer
