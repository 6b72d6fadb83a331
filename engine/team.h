// Threads that share the steps of a run, and how many cores a process may use.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "phasor/executor.h"

namespace phasor::internal {

/// The calling thread and up to size − 1 others, each started by the first loop that needs it.
/// Between loops they spin for some microseconds and then sleep. One caller at a time, and no loop
/// within another of the same team.
///
/// A thread begins with a share of the tasks that is the same in every loop of as many tasks, so
/// that it finds its weights in its own cache, and then takes what others have not begun. The
/// caller waits only for tasks that were begun: a thread that gets no core delays nobody.
class Team {
 public:
  /// With an executor, its threads are used and none are started.
  explicit Team(int size, std::shared_ptr<Executor> executor = nullptr);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return size_; }

  /// body(task, thread) for all tasks, in any order, with thread < threads <= size(). If bodies
  /// throw, the exception of the smallest task is rethrown after all have run.
  template <typename Body>
  void run(int threads, int64_t tasks, const Body& body) {
    const auto call = [](const void* of, int64_t task, int thread) {
      (*static_cast<const Body*>(of))(task, thread);
    };
    run_loop(threads, tasks, call, &body);
  }

 private:
  using Call = void (*)(const void* body, int64_t task, int thread);
  struct alignas(64) Share {
    std::atomic<int64_t> next = 0;
    int64_t end = 0;
  };

  void run_loop(int threads, int64_t tasks, Call call, const void* body);
  void start();
  void finish();
  void serve(int thread, uint32_t seen);
  void work(int thread);
  void call_body(int64_t task, int thread);
  void check_all_taken() const;

  const int size_;
  const std::shared_ptr<Executor> executor_;
  std::vector<std::thread> threads_;  // those that were started, at most size − 1
  uint64_t forks_ = 0;                // of the process, when they were started

  // The loop that runs.
  Call call_ = nullptr;
  const void* body_ = nullptr;
  int sharing_ = 0;  // threads
  std::unique_ptr<Share[]> shares_;
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  int64_t failed_task_ = 0;

  std::atomic<uint32_t> epoch_ = 0;  // grows with every loop
  std::atomic<bool> stop_ = false;
  std::atomic<int> open_ = 0;    // threads with a smaller number may join
  std::atomic<int> active_ = 0;  // threads that may be in the loop, without the caller
};

/// The threads that a step may use: the caller's alone, or some of a team's.
class Threads {
 public:
  Threads() = default;
  Threads(Team& team, int count) : team_(&team), count_(std::clamp(count, 1, team.size())) {}
  explicit Threads(Team& team) : Threads(team, team.size()) {}

  int count() const { return count_; }

  /// As Team::run().
  template <typename Body>
  void run(int64_t tasks, const Body& body) const {
    if (team_ != nullptr) return team_->run(count_, tasks, body);
    for (int64_t task = 0; task < tasks; ++task) body(task, 0);
  }

  /// body(first, count) for ranges of rows of `width` values.
  template <typename Body>
  void run_rows(int64_t num_rows, int64_t width, const Body& body) const {
    constexpr int64_t kValues = 8192;  // fewer are not worth another thread
    const int64_t most = std::max<int64_t>(1, kValues / width);
    run((num_rows + most - 1) / most,
        [&](int64_t r, int) { body(r * most, std::min(most, num_rows - r * most)); });
  }

 private:
  Team* team_ = nullptr;
  int count_ = 1;
};

/// The number of threads that an option means: 0 is num_cores(), or the executor's number, which is
/// also the most. Throws InvalidArgument below 0 and above 1024.
int team_size(int threads, const Executor* executor = nullptr);

/// body(i) for i = 0 … count − 1 on threads that are started for it; see Team::run().
void parallel_for(int64_t count, int threads, const std::function<void(int64_t i)>& body);

/// The least CPU quota of the process's control group and its parents, in cores; empty: there is
/// none. Reads ROOT/proc/self and the files of the hierarchies that it names, below ROOT, too.
/// Files that are absent or malformed set no quota.
std::optional<double> cpu_quota(const std::string& root = "");

/// The cores in the calling thread's affinity, but no more than the quota, rounded up. At least 1.
/// Reads files, so it is called once for an Encoder.
int num_cores();

}  // namespace phasor::internal
