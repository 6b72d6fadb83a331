#include "infer/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "infer/render/terminal.h"

namespace infer {

Progress::Progress(bool quiet) : enabled_(!quiet && isatty(STDERR_FILENO) != 0) {}

void Progress::show(std::string_view text) {
  if (!enabled_ || Clock::now() < next_) return;
  next_ = Clock::now() + std::chrono::milliseconds(100);
  shown_ = true;
  fmt::print(stderr, "\r{}\033[K", printable(text));
}

void Progress::show(std::string_view what, int64_t done, int64_t total) {
  if (enabled_) show(fmt::format("{}: {} of {}", what, done, total));
}

void Progress::clear() {
  if (shown_) fmt::print(stderr, "\r\033[K");
  shown_ = false;
}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

}  // namespace infer
