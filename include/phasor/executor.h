// Threads for Encoders to run on: an application's own, or phasor's for several of them.
#pragma once

#include <functional>
#include <memory>

namespace [[gnu::visibility("default")]] phasor {

/// Runs work on threads of the application, in place of an Encoder's own. One may serve several
/// Encoders: run() is called by any number of threads at the same time, also within work().
class Executor {
 public:
  virtual ~Executor() = default;

  /// How many threads can work at the same time, the calling thread's included, from 1 to 1024.
  /// An Encoder uses as many, or EncoderOptions::threads if that is fewer.
  virtual int threads() const = 0;

  /// Calls work(i) for i = 0 … count − 1, each at most once, on any threads; count is at most
  /// threads(). Neither returns nor throws before all calls that were made have returned. The calls
  /// share the steps among themselves: once one has returned, nothing is left to begin, and calls
  /// that were not made can be left out. They do not throw.
  ///
  /// A run() that only waits for other threads of a pool never ends when all of them wait in it:
  /// the calling thread should make the first call itself, as examples/executor.cc does. A step
  /// takes microseconds: threads that wait for work should spin for a while before they sleep.
  virtual void run(int count, const std::function<void(int)>& work) = 0;
};

/// Threads for several Encoders, that together use as many cores as one with this number in
/// EncoderOptions::threads. Its run() also takes more calls than it has threads, and throws what
/// work() throws. Throws InvalidArgument below 0 and above 1024.
std::shared_ptr<Executor> make_executor(int threads = 0);

}  // namespace phasor
