#include "engine/fork.h"

#include <pthread.h>

#include <atomic>
#include <new>

namespace phasor::internal {
namespace {

std::atomic<uint64_t> forks = 0;
constexpr pthread_rwlock_t kUnlocked =  // a fork that waits goes before new readers
    PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
pthread_rwlock_t lock = kUnlocked;
thread_local int depth = 0;  // of NoForks, of which the outermost holds the lock

/// A fork waits until no other thread has a NoFork.
void handle_forks() {
  static const int handled =
      pthread_atfork([] { pthread_rwlock_wrlock(&lock); }, [] { pthread_rwlock_unlock(&lock); },
                     [] {
                       // The child's thread has another id than the one that locked, and cannot
                       // unlock.
                       new (&lock) pthread_rwlock_t(kUnlocked);
                       ++forks;
                     });
  static_cast<void>(handled);
}

}  // namespace

uint64_t count_forks() {
  handle_forks();
  return forks;
}

NoFork::NoFork() {
  handle_forks();
  if (depth++ == 0) pthread_rwlock_rdlock(&lock);
}

NoFork::~NoFork() {
  if (--depth == 0) pthread_rwlock_unlock(&lock);
}

}  // namespace phasor::internal
