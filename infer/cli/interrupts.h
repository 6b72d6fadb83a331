// Signals that end work at a good place.
#pragma once

#include <csignal>

namespace infer {

/// Holds back SIGINT, SIGTERM and SIGHUP for as long as one lives, so that work ends at a good
/// place. The end of the last one lets them through: a signal that has come then ends the program
/// as it always does. For the main thread.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  bool pending() const;

 private:
  static inline int alive_ = 0;
  static inline sigset_t before_;
};

}  // namespace infer
