// AMX in software, for machines without it.
#pragma once

#if defined(__x86_64__) && defined(__linux__)

#include <csignal>

namespace phasor {

/// While it lives, AMX instructions of this thread that the CPU lacks are executed in software; a
/// fault that the CPU would raise ends the program with a message. Knows what attention uses: tile
/// configurations, loads, stores, and TDPBF16PS. A CPU with AMX executes them itself.
class AmxEmulator {
 public:
  AmxEmulator();
  ~AmxEmulator();
  AmxEmulator(const AmxEmulator&) = delete;
  AmxEmulator& operator=(const AmxEmulator&) = delete;

 private:
  struct sigaction former_;
};

}  // namespace phasor

#endif
