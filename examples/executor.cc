// Runs an Encoder on the application's own threads, here a small pool.
#include <phasor/phasor.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace {

class Pool : public phasor::Executor {
 public:
  explicit Pool(int threads) {
    for (int i = 1; i < threads; ++i) threads_.emplace_back([this] { serve(); });
  }
  ~Pool() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  int threads() const override { return static_cast<int>(threads_.size()) + 1; }

  // The caller works, too, so this also ends when all threads of the pool are in here.
  void run(int count, const std::function<void(int)>& work) override {
    Loop loop = {.work = &work, .count = count};
    {
      const std::lock_guard lock(mutex_);
      loops_.push_back(&loop);
    }
    wake_.notify_all();
    work(0);
    std::unique_lock lock(mutex_);  // calls that nobody has begun are left out
    loops_.erase(std::remove(loops_.begin(), loops_.end(), &loop), loops_.end());
    done_.wait(lock, [&] { return loop.running == 0; });
  }

 private:
  struct Loop {
    const std::function<void(int)>* work;
    int count;
    int next = 1;
    int running = 0;
  };

  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stop_ || !loops_.empty(); });
      if (stop_) return;
      Loop& loop = *loops_.front();
      const int call = loop.next++;
      if (loop.next == loop.count) loops_.pop_front();
      ++loop.running;
      lock.unlock();
      (*loop.work)(call);
      lock.lock();
      if (--loop.running == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_, done_;
  std::deque<Loop*> loops_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

int main() {
  const auto model = phasor::Model::load("sinusoidal");
  const auto pool = std::make_shared<Pool>(4);
  phasor::Encoder on_pool(model, {.executor = pool});
  phasor::Encoder alone(model, {.threads = 1});
  const std::vector<const char*> texts(20, "Tom bit a dog.");
  const phasor::Vectors a = on_pool.embed(texts), b = alone.embed(texts);
  const bool same = std::ranges::equal(a.dense, b.dense);
  std::printf("on %d threads: %s\n", on_pool.threads(), same ? "the same bits" : "other bits");
  return same ? 0 : 1;
}
