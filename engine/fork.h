// fork(), in whose child no thread lives on but the one that forked.
#pragma once

#include <cstdint>

namespace phasor::internal {

/// How many forks lie between the first process and this one.
uint64_t count_forks();

/// While one lives, no thread can fork. Stands around every lock that calls share: in a child, a
/// lock that another thread held stays locked for good. One may stand within another.
class NoFork {
 public:
  NoFork();
  ~NoFork();
  NoFork(const NoFork&) = delete;
  NoFork& operator=(const NoFork&) = delete;
};

}  // namespace phasor::internal
