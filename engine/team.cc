// A loop is opened, its tasks are taken from the threads' shares, and it is closed; only then does
// the caller look whether a thread is still inside. A thread enters first and then looks whether
// the loop is open. Both orders are sequentially consistent, so one of the two sees the other.

#include "engine/team.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <system_error>
#include <utility>

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

std::atomic<uint64_t> forks = 0;

/// How many processes lie between the first and this one. A child has only the thread that forked.
uint64_t count_forks() {
  static const int counted = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  static_cast<void>(counted);
  return forks;
}

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

Team::Team(int size, std::shared_ptr<Executor> executor)
    : size_(size), executor_(std::move(executor)), shares_(std::make_unique<Share[]>(size)) {}

Team::~Team() { finish(); }

// Starts what the loop lacks; where the system refuses a thread, the others do its work.
void Team::start() {
  if (forks_ != count_forks()) finish();
  if (std::ssize(threads_) >= sharing_ - 1) return;
  forks_ = count_forks();
  const SignalsBlocked blocked;
  for (int thread = static_cast<int>(threads_.size()) + 1; thread < sharing_; ++thread) {
    try {
      threads_.emplace_back([this, thread, seen = epoch_.load()] { serve(thread, seen); });
    } catch (const std::system_error&) {
      return;
    }
  }
}

void Team::finish() {
  stop_ = true;
  ++epoch_;
  epoch_.notify_all();
  if (forks_ == count_forks()) {
    for (std::thread& thread : threads_) thread.join();
  } else {  // the parent's: they do not exist here, and can neither be joined nor detached
    for (std::thread& thread : threads_) std::construct_at(&thread);
    active_ = 0;
  }
  threads_.clear();
  stop_ = false;
}

void Team::serve(int thread, uint32_t seen) {
  while (true) {
    seen = await_change(epoch_, seen);
    if (stop_) return;
    ++active_;
    if (thread < open_) work(thread);
    if (--active_ == 0) active_.notify_one();
  }
}

void Team::run_loop(int threads, int64_t tasks, Call call, const void* body) {
  call_ = call;
  body_ = body;
  sharing_ = static_cast<int>(std::clamp<int64_t>(tasks, 1, threads));
  failure_ = nullptr;
  for (int thread = 0; thread < sharing_; ++thread) {
    shares_[thread].next.store(tasks * thread / sharing_, std::memory_order_relaxed);
    shares_[thread].end = tasks * (thread + 1) / sharing_;
  }
  if (sharing_ == 1) {
    work(0);
  } else if (executor_) {
    executor_->run(sharing_, [this](int thread) { work(thread); });
    check_all_taken();
  } else {
    start();
    open_ = sharing_;
    ++epoch_;
    epoch_.notify_all();
    work(0);
    open_ = 0;
    for (int inside = active_; inside != 0;) inside = await_change(active_, inside);
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Team::check_all_taken() const {
  for (int thread = 0; thread < sharing_; ++thread) {
    if (shares_[thread].next >= shares_[thread].end) continue;
    throw InvalidArgument("the Executor's run() made no call of its work");
  }
}

void Team::work(int thread) {
  for (int i = 0; i < sharing_; ++i) {
    Share& share = shares_[(thread + i) % sharing_];
    for (int64_t task; (task = share.next.fetch_add(1)) < share.end;) call_body(task, thread);
  }
}

void Team::call_body(int64_t task, int thread) {
  try {
    call_(body_, task, thread);
  } catch (...) {
    const std::lock_guard lock(failure_mutex_);
    if (failure_ && failed_task_ < task) return;
    failed_task_ = task;
    failure_ = std::current_exception();
  }
}

int team_size(int threads, const Executor* executor) {
  constexpr int kMostThreads = 1024;
  if (threads < 0 || threads > kMostThreads)
    refuse<InvalidArgument>("threads is {}; it must be 0 (all cores) to {}", threads, kMostThreads);
  if (executor == nullptr && threads > 0) return threads;
  const int all = executor != nullptr ? executor->threads() : num_cores();
  return std::clamp(threads > 0 ? std::min(threads, all) : all, 1, kMostThreads);
}

void parallel_for(int64_t count, int threads, const std::function<void(int64_t i)>& body) {
  Team team(threads);
  Threads(team).run(count, [&](int64_t i, int) { body(i); });
}

}  // namespace phasor::internal
