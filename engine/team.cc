// A caller takes a desk, opens its loop there, takes tasks from the threads' shares, and closes it;
// only then does it look whether a helper is still inside. A helper enters first and then looks
// whether the loop is open. Both orders are sequentially consistent, so one of the two sees the
// other. In the same way either who opens a loop sees that callers have become fewer, or who leaves
// sees the loop; and a helper that found none reads `epoch_` before it looked.

#include "engine/team.h"

#include <signal.h>

#include <chrono>
#include <system_error>
#include <utility>

#include "engine/fork.h"
#include "files/refuse.h"

namespace phasor::internal {
namespace {

// Longer than the serial steps between two loops of a forward pass, far shorter than a time slice.
constexpr std::chrono::microseconds kSpin{50};

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Returns once `value` is not `old`.
template <typename T>
T await_change(const std::atomic<T>& value, T old) {
  const auto begin = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < 32; ++i) {
      if (const T now = value.load(); now != old) return now;
      pause();
    }
  } while (std::chrono::steady_clock::now() - begin < kSpin);
  value.wait(old);
  return value.load();
}

thread_local const Team* counted = nullptr;  // by which this thread is counted
constexpr int kStays = -1;                   // in place of the number of a helper

/// Signals stay with the application's threads, but for those that a thread itself causes.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int own : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGPROF}) {
      sigdelset(&all, own);
    }
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

Team::Caller::Caller(Team& team) : team_(team), before_(counted) {
  if (before_ == &team_) return;
  if (team_.forks_ != count_forks()) team_.forget_parent();  // may throw
  counted = &team_;
  ++team_.callers_;
}

Team::Caller::~Caller() {
  counted = before_;
  if (before_ == &team_) return;
  if (--team_.callers_ < team_.size_ && team_.is_any_open()) team_.wake();
}

Team::Team(int size, std::shared_ptr<Executor> executor)
    : size_(size),
      executor_(std::move(executor)),
      num_desks_(std::min(size, kMostDesks)),
      desks_(make_desks()),
      threads_(size - 1),
      forks_(count_forks()) {}

Team::~Team() {
  stop_ = true;
  wake();
  for (std::thread& thread : threads_) {
    if (forks_ != count_forks()) {  // the parent's: they can neither be joined nor detached here
      std::construct_at(&thread);
    } else if (thread.joinable()) {
      thread.join();
    }
  }
}

// Where few threads share a loop, those at other desks should not be the same.
std::unique_ptr<Team::Desk[]> Team::make_desks() const {
  auto desks = std::make_unique<Desk[]>(num_desks_);
  for (int d = 0; d < num_desks_; ++d) {
    desks[d].first_helper = d * (size_ - 1) / num_desks_;
    desks[d].shares = std::make_unique<Share[]>(size_);
  }
  return desks;
}

// In the child of a fork: the helpers, and whoever sat at a desk, do not exist here.
void Team::forget_parent() {
  const NoFork no_fork;
  const std::lock_guard lock(start_mutex_);
  if (forks_ == count_forks()) return;
  std::unique_ptr<Desk[]> desks = make_desks();
  static_cast<void>(desks_.release());
  desks_ = std::move(desks);
  for (std::thread& thread : threads_) std::construct_at(&thread);
  callers_ = helpers_ = 0;
  forks_ = count_forks();
}

bool Team::is_any_open() const {
  return std::ranges::any_of(desks(), [](const Desk& desk) { return desk.open > 0; });
}

void Team::wake() {
  ++epoch_;
  epoch_.notify_all();
}

void Team::run_loop(const Work& work, int threads, int64_t tasks) {
  const auto sharing = static_cast<int>(std::clamp<int64_t>(tasks, 1, threads));
  if (sharing == 1) return run_alone(work, tasks);
  const Caller caller(*this);
  Desk* const desk = take_desk();
  if (desk == nullptr) return run_alone(work, tasks);
  desk->work = work;
  desk->sharing = sharing;
  std::exception_ptr failure;
  try {
    share(*desk, tasks);
    failure = std::exchange(desk->failure, nullptr);
  } catch (...) {
    failure = std::current_exception();
  }
  desk->taken = false;
  if (failure) std::rethrow_exception(failure);
}

void Team::run_alone(const Work& work, int64_t tasks) {
  std::exception_ptr failure;
  for (int64_t task = 0; task < tasks; ++task) {
    try {
      work(task, 0);
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

Team::Desk* Team::take_desk() {
  for (Desk& desk : desks()) {
    if (!desk.taken && !desk.taken.exchange(true)) return &desk;
  }
  return nullptr;
}

void Team::share(Desk& desk, int64_t tasks) {
  desk.failure = nullptr;  // an Executor that threw may have left one
  for (int thread = 0; thread < desk.sharing; ++thread) {
    desk.shares[thread].next.store(tasks * thread / desk.sharing, std::memory_order_relaxed);
    desk.shares[thread].end = tasks * (thread + 1) / desk.sharing;
  }
  if (executor_) {
    executor_->run(desk.sharing, [&](int thread) { take_tasks(desk, thread, kStays); });
    for (int thread = 0; thread < desk.sharing; ++thread) {
      if (desk.shares[thread].next < desk.shares[thread].end)
        throw InvalidArgument("the Executor's run() made no call of its work");
    }
    return;
  }
  if (desk.started < desk.sharing - 1) start(desk);
  desk.open = desk.sharing;
  if (callers_ < size_) wake();
  take_tasks(desk, 0, kStays);
  for (int inside = desk.inside; inside != 0;) inside = await_change(desk.inside, inside);
}

// Starts what the loop lacks; where the system refuses a thread, the others do its work.
void Team::start(Desk& desk) {
  const NoFork no_fork;
  const std::lock_guard lock(start_mutex_);
  const SignalsBlocked blocked;
  for (; desk.started < desk.sharing - 1; ++desk.started) {
    const int helper = (desk.first_helper + desk.started) % (size_ - 1);
    if (threads_[helper].joinable()) continue;
    try {
      threads_[helper] = std::thread([this, helper] { serve(helper); });
    } catch (const std::system_error&) {
      return;
    }
  }
}

void Team::serve(int helper) {
  counted = this;
  for (uint32_t seen; seen = epoch_, !stop_;) {
    if (!help(helper)) await_change(epoch_, seen);
  }
}

/// False where there is nothing to do.
bool Team::help(int helper) {
  Desk* const desk = find_loop(helper, size_);
  if (desk == nullptr) return false;
  if (helpers_++ + callers_ >= size_) {
    --helpers_;
    refused_ = true;
    return helpers_ + callers_ < size_;  // who was counted has left meanwhile: looks again
  }
  ++desk->inside;
  if (const int thread = number_at(*desk, helper); thread < desk->open)
    take_tasks(*desk, thread, helper);
  if (--desk->inside == 0) desk->inside.notify_one();
  --helpers_;
  if (refused_.exchange(false) && is_any_open()) wake();  // who found no room has some now
  return true;
}

/// The open loop with the fewest helpers, fewer than `most`; null if there is none.
Team::Desk* Team::find_loop(int helper, int most) const {
  Desk* found = nullptr;
  for (Desk& desk : desks()) {
    if (number_at(desk, helper) >= desk.open) continue;
    if (const int inside = desk.inside; inside < most) {
      most = inside;
      found = &desk;
    }
  }
  return found;
}

bool Team::should_leave(const Desk& desk, int helper) const {
  const int callers = callers_;
  if (callers + helpers_ > size_) return true;
  return callers > 1 && find_loop(helper, desk.inside - 1) != nullptr;
}

void Team::take_tasks(Desk& desk, int thread, int helper) {
  for (int i = 0; i < desk.sharing; ++i) {
    Share& share = desk.shares[(thread + i) % desk.sharing];
    for (int64_t task; (task = share.next.fetch_add(1)) < share.end;) {
      try {
        desk.work(task, thread);
      } catch (...) {
        const std::lock_guard lock(desk.failure_mutex);
        if (!desk.failure || task < desk.failed_task) {
          desk.failed_task = task;
          desk.failure = std::current_exception();
        }
      }
      if (helper != kStays && should_leave(desk, helper)) return;
    }
  }
  desk.open = 0;  // there is nothing left to begin
}

int team_size(int threads, const Executor* executor) {
  constexpr int kMostThreads = 1024;
  if (threads < 0 || threads > kMostThreads)
    refuse<InvalidArgument>("threads is {}; it must be 0 (all cores) to {}", threads, kMostThreads);
  if (executor == nullptr && threads > 0) return threads;
  const int all = executor != nullptr ? executor->threads() : num_cores();
  return std::clamp(threads > 0 ? std::min(threads, all) : all, 1, kMostThreads);
}

}  // namespace phasor::internal

std::shared_ptr<phasor::Executor> phasor::make_executor(int threads) {
  return std::make_shared<internal::Team>(internal::team_size(threads));
}
