// How far a long piece of work has come, in one line of stderr.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string_view>

#include "infer/cli/terminal.h"
#include "phasor/progress.h"

namespace infer {

/// Says nothing during the first second, without a terminal, or with -q, and is drawn at most ten
/// times a second. The line is wiped away in the end.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet) : enabled_(!quiet && isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::string_view text) {
    if (!enabled_ || Clock::now() < next_) return;
    next_ = Clock::now() + std::chrono::milliseconds(100);
    shown_ = true;
    write_stderr(fmt::format("\r{}\033[K", printable(text)));
  }
  /// `what` has come to `done` of `total`.
  void show(std::string_view what, int64_t done, int64_t total) {
    if (enabled_) show(fmt::format("{}: {} of {}", what, done, total));
  }
  /// The same for the library. Borrows this.
  phasor::StageProgress stages() {
    return
        [this](std::string_view stage, int64_t done, int64_t total) { show(stage, done, total); };
  }
  /// Makes room for another line.
  void clear() {
    if (shown_) write_stderr("\r\033[K");
    shown_ = false;
  }
  double seconds() const {  // since the beginning
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool enabled_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now(), next_ = start_ + std::chrono::seconds(1);
};

}  // namespace infer
