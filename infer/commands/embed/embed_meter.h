// How far infer embed has come: a bar with rate and time left, on a terminal's stderr.
#pragma once

#include <chrono>
#include <cstdint>

namespace infer {

class Meter {
 public:
  /// `total_bytes`: of the input, 0 where that is not known. `done_bytes`: of an earlier run.
  Meter(bool quiet, int64_t total_bytes, int64_t done_bytes);
  ~Meter() { clear(); }
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  /// Draws, at most ten times a second. `lines`: of this run.
  void show(int64_t lines, int64_t bytes);
  /// Makes room for another line on stderr.
  void clear();
  double seconds() const;  // since this run began

 private:
  using Clock = std::chrono::steady_clock;
  bool enabled_;
  bool shown_ = false;
  int64_t total_, before_;  // in bytes
  Clock::time_point start_, next_;
};

}  // namespace infer
