// Picks the subcommand, and turns whatever it throws into one line on stderr and an exit code.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <new>
#include <string_view>

#include "infer/cli/options.h"
#include "infer/commands.h"
#include "infer/render/terminal.h"
#include "phasor/errors.h"

namespace infer {
namespace {

/// Starts this program anew with a bound on how long OpenMP's threads wait by spinning, unless the
/// environment has one. libgomp reads it before main, and its default of about 15 ms keeps cores
/// from the threads that are waited for: with three busy cores of four, a sentence took 300 ms
/// instead of 30. Returns where that cannot be done, or was.
void bound_spinning(char** argv) {
  // About half a millisecond: longer than a step of the forward pass, shorter than a time slice.
  constexpr const char* kSpins = "10000";
  constexpr const char* kMilliseconds = "1";  // for clang's OpenMP, which counts in these
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  if (setenv("GOMP_SPINCOUNT", kSpins, 0) != 0) return;
  if (setenv("KMP_BLOCKTIME", kMilliseconds, 0) != 0) return;
  execv("/proc/self/exe", argv);
}

int dispatch(int argc, char** argv) {
  // Only the first word names a subcommand: in `infer Tom info` both words are texts.
  const std::string_view first = argc > 1 ? argv[1] : "";
  // Not for one text, which would feel the 5 ms of a second start.
  if (first == "embed" || first == "bench" || first == "compare" || first == "observe")
    bound_spinning(argv);
  if (first == "tokenize") return tokenize(argc - 1, argv + 1);
  if (first == "embed") return embed(argc - 1, argv + 1);
  if (first == "bench") return bench(argc - 1, argv + 1);
  if (first == "info") return info(argc - 1, argv + 1);
  if (first == "compare") return compare(argc - 1, argv + 1);
  if (first == "observe") return observe(argc - 1, argv + 1);
  if (first == "positions") return positions(argc - 1, argv + 1);
  if (first == "verify") return verify(argc - 1, argv + 1);
  return run(argc, argv);
}

int guarded(int argc, char** argv) {
  try {
    return dispatch(argc, argv);
  } catch (const CLI::ParseError& error) {
    report_error(std::string(error.what()) + "; infer --help lists the options");
    return kUsage;
  } catch (const std::exception&) {
    return report_current_exception();
  }
}

}  // namespace
}  // namespace infer

int main(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "C.UTF-8");  // wcwidth() knows no wide character in "C"
  // A closed pipe and a file that has reached its limit come back as errors of write().
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  return infer::guarded(argc, argv);
}
