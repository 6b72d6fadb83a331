// Hash tables in which a file's author has made keys collide.
#pragma once

#include <fmt/format.h>

#include <string>

#include "phasor/errors.h"

namespace phasor::internal {

/// Throws ModelError, naming `file`, where more keys than chance puts there share the bucket of
/// `key`, which is in `table`: each look-up would compare all of them.
template <typename Table, typename Key>
void refuse_crowding(const Table& table, const Key& key, const std::string& file) {
  constexpr size_t kMost = 64;  // of four million keys at random, none has more than 15
  if (table.bucket_size(table.bucket(key)) <= kMost) return;
  throw ModelError(fmt::format("{}: more than {} of its pieces have the same hash", file, kMost));
}

}  // namespace phasor::internal
