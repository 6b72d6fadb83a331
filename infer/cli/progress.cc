// How far a long piece of work has come, in one line of stderr.
#include "infer/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "infer/render/terminal.h"

namespace infer {

Progress::Progress(bool quiet)
    : enabled_(!quiet && isatty(STDERR_FILENO) != 0),
      next_(Clock::now() + std::chrono::seconds(1)) {}

void Progress::clear() {
  if (shown_) fmt::print(stderr, "\r\033[K");
  shown_ = false;
}

void Progress::show(std::string_view what, int64_t done, int64_t total) {
  if (!enabled_ || Clock::now() < next_) return;
  next_ = Clock::now() + std::chrono::milliseconds(100);
  shown_ = true;
  fmt::print(stderr, "\r{}: {} of {}\033[K", printable(what), done, total);
}

}  // namespace infer
