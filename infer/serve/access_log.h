// A line of JSON for each answer, on standard output.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "infer/serve/metrics.h"
#include "infer/serve/service.h"

namespace infer {

/// Writes on a thread of its own. Where nobody takes the lines (a full pipe), later ones are
/// dropped and counted, and no request waits.
class AccessLog {
 public:
  explicit AccessLog(Metrics& metrics);
  ~AccessLog() { end(); }

  /// Any thread.
  void add(const Served& served);
  /// Writes the waiting lines while standard output takes them, then ends the thread.
  void end();

 private:
  static constexpr size_t kMostLines = 10'000;  // that wait

  void write(const std::stop_token& stop);

  Metrics& metrics_;
  std::mutex mutex_;
  std::condition_variable_any ready_;
  std::deque<std::string> lines_;
  std::jthread thread_;
};

}  // namespace infer
