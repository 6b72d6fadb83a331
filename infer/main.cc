// Runs a command, and turns whatever it throws into one line on stderr and an exit code.
#include <clocale>
#include <csignal>
#include <cstdlib>

#include "infer/commands.h"
#include "infer/render/terminal.h"

int main(int argc, char** argv) {
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
