// How far infer embed has come: a bar with rate and time left, on a terminal's stderr.
#include "infer/commands/embed/embed_meter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "infer/render/terminal.h"

namespace infer {
namespace {

std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  const std::string minutes_and_seconds = fmt::format("{:02}:{:02}", whole / 60 % 60, whole % 60);
  return whole < 3600 ? minutes_and_seconds
                      : fmt::format("{}:{}", whole / 3600, minutes_and_seconds);
}

}  // namespace

Meter::Meter(bool quiet, int64_t total_bytes, int64_t done_bytes)
    : enabled_(!quiet && isatty(STDERR_FILENO) != 0),
      total_(total_bytes),
      before_(done_bytes),
      start_(Clock::now()),
      next_(start_ + std::chrono::milliseconds(500)) {}

void Meter::show(int64_t lines, int64_t bytes) {
  if (!enabled_ || Clock::now() < next_) return;
  next_ = Clock::now() + std::chrono::milliseconds(100);
  shown_ = true;
  std::string text =
      fmt::format("{} lines, {:.0f}/s", lines, static_cast<double>(lines) / seconds());
  if (total_ > 0 && bytes > before_) {
    constexpr int kWidth = 30;
    const auto done = static_cast<double>(bytes), total = static_cast<double>(total_);
    const double left =
        seconds() * std::max(total - done, 0.0) / (done - static_cast<double>(before_));
    text = fmt::format("{}▏{:3.0f} %  {}, {} left", pad_right(bar(done / total, kWidth), kWidth),
                       100 * std::min(done / total, 1.0), text, clock_text(left));
  }
  fmt::print(stderr, "\r{}\033[K", text);
}

void Meter::clear() {
  if (shown_) fmt::print(stderr, "\r\033[K");
  shown_ = false;
}

double Meter::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

}  // namespace infer
