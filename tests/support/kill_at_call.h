// A program that is stopped just before one of its system calls that change files.
#pragma once

#include "tests/support/test.h"

namespace phasor {

/// What happens at a call of a program's main thread that opens, writes, renames, removes or locks
/// files; writing to its standard output and error does not count.
struct AtCall {
  int number = 0;                        // of the call, from 0
  int signal = 0;                        // is sent to the program,
  int error = 0;                         // the call fails with this errno without being done,
  std::function<void()> meanwhile = {};  // and this is called before it goes on
};

struct TracedResult {
  bool reached = false;  // the call
  int exit_code = 0;     // 128 + n where signal n ended it
  std::string err;       // its standard error, at most 64 KiB
};

TracedResult run_to_call(const std::vector<std::string>& arguments, const AtCall& at);

/// Whether this process may trace others.
bool can_kill_at_call();
/// Whether it may also let a call of theirs fail.
bool can_fail_at_call();

}  // namespace phasor
