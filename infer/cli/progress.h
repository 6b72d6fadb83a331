// How far a long piece of work has come, in one line of stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace infer {

/// Says nothing during the first second, without a terminal, or with -q, and is drawn at most ten
/// times a second. The line is wiped away in the end.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::string_view text);
  /// `what` has come to `done` of `total`.
  void show(std::string_view what, int64_t done, int64_t total);
  /// Makes room for another line.
  void clear();
  double seconds() const;  // since the beginning

 private:
  using Clock = std::chrono::steady_clock;
  bool enabled_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now(), next_ = start_ + std::chrono::seconds(1);
};

}  // namespace infer
