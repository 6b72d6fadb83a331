// infer embed --max-memory: a limit on what the whole program has resident.
#pragma once

#include <cstdint>

#include "infer/commands/embed/embedder.h"

namespace infer {

/// Chooses how many tokens run at once, so that the program never has more than `limit` bytes
/// resident; vectors stay the same. `row_bytes` are those of a line's vector as it is written, and
/// `kept_bytes` those of what is kept until the end. Throws InvalidArgument, which says what is
/// enough, where that cannot be, and UsageError where texts of any length are run whole.
void limit_memory(int64_t limit, int64_t row_bytes, int64_t kept_bytes, Embedder& embedder);

}  // namespace infer
