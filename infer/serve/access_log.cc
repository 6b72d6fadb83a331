#include "infer/serve/access_log.h"

#include <fmt/chrono.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>

#include "files/json_writer.h"

namespace infer {

namespace {

constexpr int kWait = 100;  // ms, until a full pipe is looked at again

/// Writes to standard output. False where it takes no more: it is closed, or full when the server
/// ends.
bool put(std::string_view text, const std::stop_token& stop) {
  while (!text.empty()) {
    pollfd out{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
    if (poll(&out, 1, kWait) == 0) {
      if (stop.stop_requested()) return false;
      continue;
    }
    // A pipe that is ready takes so much at once.
    const ssize_t written =
        write(STDOUT_FILENO, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (written < 0 && errno != EINTR && errno != EAGAIN) return false;
    text.remove_prefix(static_cast<size_t>(std::max<ssize_t>(written, 0)));
  }
  return true;
}

}  // namespace

AccessLog::AccessLog(Metrics& metrics)
    : metrics_(metrics), thread_([this](const std::stop_token& stop) { write(stop); }) {}

void AccessLog::add(const Served& served) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::string line = phasor::internal::json_object(
      "time", fmt::format("{:%FT%TZ}", fmt::gmtime(now)), "id", served.id, "client", served.client,
      "method", served.method.substr(0, 16), "path", served.path.substr(0, 256), "model",
      served.model, "status", served.status, "ms", std::round(served.seconds * 1e5) / 100, "texts",
      served.texts, "tokens", served.tokens);
  {
    const std::lock_guard lock(mutex_);
    if (lines_.size() >= kMostLines) return metrics_.lost_line();
    lines_.push_back(std::move(line) + "\n");
  }
  ready_.notify_one();
}

void AccessLog::end() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void AccessLog::write(const std::stop_token& stop) {
  while (true) {
    std::deque<std::string> lines;
    {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, stop, [&] { return !lines_.empty(); });
      if (lines_.empty()) return;
      lines.swap(lines_);
    }
    for (const std::string& line : lines) {
      if (!put(line, stop)) return;
    }
  }
}

}  // namespace infer
