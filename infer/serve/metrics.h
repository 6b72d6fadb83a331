// What a server has done, as Prometheus reads it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace infer {

/// Counts of values up to each of some bounds.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);
  void add(double value);
  /// Lines of Prometheus' text format; `labels` is `route="/embed"`, or empty.
  std::string text(std::string_view name, const std::string& labels) const;

 private:
  std::vector<double> bounds_;
  std::vector<uint64_t> counts_;  // the last one beyond all bounds
  double sum_ = 0;
};

/// Any thread.
class Metrics {
 public:
  using Duration = std::chrono::steady_clock::duration;

  /// `model` may be empty.
  void request(std::string_view route, std::string_view model, int status, Duration duration);
  void ran(int64_t texts, int64_t tokens) {
    texts_ += static_cast<uint64_t>(texts);
    tokens_ += static_cast<uint64_t>(tokens);
  }
  void dropped() { ++dropped_; }       // from the queue: late, or abandoned
  void lost_line() { ++lost_lines_; }  // of the log

  /// `waiting`: each model's name and the requests that wait for it.
  std::string text(const std::vector<std::pair<std::string, int64_t>>& waiting) const;

 private:
  mutable std::mutex mutex_;
  using Labels = std::string;                            // route="/embed",model="small"
  std::map<std::pair<Labels, int>, uint64_t> requests_;  // by status, too
  std::map<Labels, Histogram> durations_;
  std::atomic<uint64_t> texts_ = 0, tokens_ = 0, dropped_ = 0, lost_lines_ = 0;
};

}  // namespace infer
