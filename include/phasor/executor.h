// An application's own threads, for Encoders to run on.
#pragma once

#include <functional>

namespace [[gnu::visibility("default")]] phasor {

/// Runs work on threads of the application, in place of an Encoder's own. One may serve several
/// Encoders at the same time.
class Executor {
 public:
  virtual ~Executor() = default;

  /// How many calls can run at the same time, the calling thread's included: an Encoder with
  /// EncoderOptions::threads = 0 uses as many.
  virtual int threads() const = 0;

  /// Calls work(0) … work(count − 1), each once, on any threads and in any order; neither returns
  /// nor throws before all have returned. They share the steps among themselves, so each may run
  /// alone, and one that starts late finds nothing left to do. They do not throw. A step takes
  /// microseconds: threads that wait for work should spin for a while before they sleep.
  virtual void run(int count, const std::function<void(int)>& work) = 0;
};

}  // namespace phasor
