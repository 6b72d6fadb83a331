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
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "phasor/executor.h"

namespace phasor::internal {

/// Loops of any number of threads at the same time, which up to size − 1 helpers share, each
/// started by the first loop that needs it. Between loops they spin for some microseconds and then
/// sleep.
///
/// A loop belongs to its caller, who begins at once. Idle helpers join the open loop with the
/// fewest of them, while there are fewer callers and helpers than `size`; after each task a helper
/// looks whether there are more, or a loop has fewer helpers. So a caller waits only for tasks that
/// were begun: a thread that gets no core delays nobody.
///
/// A thread begins with a share of the tasks that is the same in every loop of as many tasks, so
/// that it finds its weights in its own cache, and then takes what others have not begun.
class Team : public Executor {
 public:
  /// With an executor, its threads are used and none are started.
  explicit Team(int size, std::shared_ptr<Executor> executor = nullptr);
  ~Team() override;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return size_; }

  /// body(task, thread) for all tasks, in any order, with thread < threads <= size(); no two have
  /// the same thread at a time. If bodies throw, the exception of the smallest task is rethrown
  /// after all have run. Any thread may call, also within a body.
  template <typename Body>
  void run(int threads, int64_t tasks, const Body& body) {
    const auto call = [](const void* of, int64_t task, int thread) {
      (*static_cast<const Body*>(of))(task, thread);
    };
    run_loop({call, &body}, threads, tasks);
  }

  int threads() const override { return size_; }
  void run(int count, const std::function<void(int)>& work) override {
    run(std::min(count, size_), count, [&](int64_t call, int) { work(static_cast<int>(call)); });
  }

  /// Counts its thread as a caller, also between its loops: once, however many live there.
  class Caller {
   public:
    explicit Caller(Team& team);
    ~Caller();
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

   private:
    Team& team_;
    const Team* const before_;  // for which this thread was counted
  };

 private:
  struct Work {
    void (*call)(const void* body, int64_t task, int thread);
    const void* body;
    void operator()(int64_t task, int thread) const { call(body, task, thread); }
  };
  struct alignas(64) Share {
    std::atomic<int64_t> next = 0;
    int64_t end = 0;
  };
  /// Where a loop runs that several threads share.
  struct alignas(64) Desk {
    std::atomic<bool> taken = false;
    std::atomic<int> open = 0;    // threads with a smaller number may join
    std::atomic<int> inside = 0;  // helpers that may be in the loop
    int first_helper = 0;         // has the number 1 here; the next ones follow
    int started = 0;              // as many of them were started
    Work work = {};
    int sharing = 0;  // threads
    std::unique_ptr<Share[]> shares = {};
    std::mutex failure_mutex = {};
    std::exception_ptr failure = {};
    int64_t failed_task = 0;
  };
  static constexpr int kMostDesks = 16;

  std::unique_ptr<Desk[]> make_desks() const;
  std::span<Desk> desks() const { return {desks_.get(), static_cast<size_t>(num_desks_)}; }
  bool is_any_open() const;
  void forget_parent();

  void run_loop(const Work& work, int threads, int64_t tasks);
  static void run_alone(const Work& work, int64_t tasks);
  Desk* take_desk();
  void share(Desk& desk, int64_t tasks);
  void start(Desk& desk);
  void wake();

  void serve(int helper);
  bool help(int helper);
  Desk* find_loop(int helper, int most) const;
  int number_at(const Desk& desk, int helper) const {
    return 1 + (helper + size_ - 1 - desk.first_helper) % (size_ - 1);
  }
  bool should_leave(const Desk& desk, int helper) const;
  void take_tasks(Desk& desk, int thread, int helper);

  const int size_;
  const std::shared_ptr<Executor> executor_;
  const int num_desks_;
  std::unique_ptr<Desk[]> desks_;
  std::mutex start_mutex_;
  std::vector<std::thread> threads_;  // [size − 1], those that were started
  std::atomic<uint64_t> forks_;       // of the process in which they were
  std::atomic<bool> stop_ = false;
  alignas(64) std::atomic<uint32_t> epoch_ = 0;  // grows when a helper may find a loop
  alignas(64) std::atomic<int> callers_ = 0;
  alignas(64) std::atomic<int> helpers_ = 0;  // in loops
  std::atomic<bool> refused_ = false;         // a helper found a loop, but no room
};

/// The threads that a step may use: the caller's alone, or some of a team's.
class Threads {
 public:
  Threads() = default;
  Threads(Team& team, int count) : team_(&team), count_(std::clamp(count, 1, team.size())) {}
  explicit Threads(Team& team) : Threads(team, team.size()) {}

  int count() const { return count_; }
  /// Some of them.
  Threads at_most(int count) const {
    return team_ != nullptr ? Threads(*team_, std::min(count, count_)) : *this;
  }

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

/// The least CPU quota of the process's control group and its parents, in cores; empty: there is
/// none. Reads ROOT/proc/self and the files of the hierarchies that it names, below ROOT, too.
/// Files that are absent or malformed set no quota.
std::optional<double> cpu_quota(const std::string& root = "");

/// The cores in the calling thread's affinity, but no more than the quota, rounded up. At least 1.
/// Reads files, so it is called once for an Encoder.
int num_cores();

}  // namespace phasor::internal
