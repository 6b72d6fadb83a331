// Picks the subcommand, and turns whatever it throws into one line on stderr and an exit code.
#include <CLI/CLI.hpp>
#include <clocale>
#include <csignal>
#include <map>
#include <new>
#include <string_view>

#include "infer/cli/options.h"
#include "infer/commands.h"
#include "infer/commands/embed/waiting.h"
#include "infer/render/terminal.h"
#include "phasor/errors.h"

namespace infer {
namespace {

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
