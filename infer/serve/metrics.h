// What a server has done, as Prometheus reads it.
#pragma once

#include <atomic>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace infer {

/// Any thread.
class Metrics {
 public:
  /// `model` may be empty.
  void request(std::string_view route, std::string_view model, int status, double seconds);
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
  struct Durations {
    static constexpr double kBounds[] = {.0003, .001, .003, .01, .03, .1, .3, 1, 3, 10, 30, 100};
    uint64_t counts[std::size(kBounds) + 1] = {};  // up to each; the last beyond all
    double sum = 0;                                // seconds
  };
  std::map<Labels, Durations> durations_;
  std::atomic<uint64_t> texts_ = 0, tokens_ = 0, dropped_ = 0, lost_lines_ = 0;
};

}  // namespace infer
