// Runs a command, and turns whatever it throws into one line on stderr and an exit code.
#include "infer/program.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <cstdlib>

#include "infer/cli/terminal.h"
#include "infer/commands.h"

namespace {

/// Opens /dev/null, in the wrong mode, for each closed standard descriptor, so that no later file
/// takes its number; reading or writing it still fails.
void reserve_standard_descriptors() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) >= 0) continue;
    open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

/// Under a limit of the address space: a thread's own heap reserves 128 MB for a moment, in which
/// oneDNN could not compile.
void share_one_heap_under_a_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
#ifdef M_ARENA_MAX  // glibc
  mallopt(M_ARENA_MAX, 1);
#endif
}

}  // namespace

int phasor_infer(int argc, char** argv) {
  reserve_standard_descriptors();
  share_one_heap_under_a_limit();
  std::setlocale(LC_CTYPE, "C.UTF-8");  // wcwidth() knows no wide character in "C"
  // A closed pipe and a file that has reached its limit come back as errors of write().
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  setenv("ONEDNN_JIT_PROFILE", "0", 0);  // oneDNN would search all folders for VTune's library
  try {
    return infer::run_command(argc, argv);
  } catch (const std::exception&) {
    return infer::report_current_exception();
  }
}
