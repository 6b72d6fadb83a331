#include "infer/serve/access_log.h"

#include <fmt/chrono.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "infer/render/observed_json.h"

namespace infer {

AccessLog::AccessLog(Metrics& metrics)
    : metrics_(metrics), thread_([this](const std::stop_token& stop) { write(stop); }) {}

void AccessLog::add(const Served& served) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::string line = one_line({{"time", fmt::format("{:%FT%TZ}", fmt::gmtime(now))},
                               {"client", served.client},
                               {"method", served.method},
                               {"path", served.path},
                               {"status", served.status},
                               {"ms", std::round(served.seconds * 1e5) / 100},
                               {"texts", served.texts},
                               {"tokens", served.tokens}});
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
    for (const std::string& line : lines) std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
  }
}

}  // namespace infer
