// Hash tables in which a file's author has made keys collide.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "files/refuse.h"

namespace phasor::internal {

constexpr size_t kMostInOneBucket = 16;  // of four million keys at random, none has more than 15

[[noreturn]] inline void refuse_crowded(const std::string& file, size_t most) {
  refuse<ModelError>("{}: more than {} of its pieces fall into one bucket of a hash table", file,
                     most);
}

/// Puts `entry` into `table` if its key is new. Throws ModelError, naming `file`, where more keys
/// share a bucket than chance puts there: each look-up would compare all of them.
template <typename Table>
void insert_uncrowded(Table& table, typename Table::value_type entry, const std::string& file) {
  const size_t buckets = table.bucket_count();
  const auto key = [](const auto& value) {
    if constexpr (requires { value.first; })
      return value.first;
    else
      return value;
  };
  const auto place = table.insert(std::move(entry)).first;
  size_t most = table.bucket_size(table.bucket(key(*place)));
  if (table.bucket_count() != buckets) {  // all are in other buckets now
    for (size_t i = 0; i < table.bucket_count(); ++i) most = std::max(most, table.bucket_size(i));
  }
  if (most > kMostInOneBucket) refuse_crowded(file, kMostInOneBucket);
}

}  // namespace phasor::internal
