// The loop over threads: every task once, exceptions that come back to the caller, an application's
// executor, a fork's child. A program of its own, which .ci/run also runs under the thread
// sanitizer.
#include "engine/team.h"

#include <chrono>
#include <latch>
#include <new>

#include "engine/pool.h"
#include "tests/support/encoder_cases.h"
#include "tests/support/run_program.h"

namespace phasor {
using namespace internal;

namespace {

constexpr int kSizes[] = {1, 2, 4, 7};

TEST(TeamTest, RunsEveryTaskOnceOnItsThreads) {
  for (const int size : kSizes) {
    Team team(size);
    for (int round = 0; round < 50; ++round) {
      for (const int64_t tasks : {0, 1, 3, 100}) {
        std::vector<std::atomic<int>> calls(tasks);
        std::atomic<bool> known = true;
        Threads(team).run(tasks, [&](int64_t task, int thread) {
          ++calls[task];
          if (thread < 0 || thread >= size) known = false;
        });
        EXPECT_TRUE(known);
        for (const auto& count : calls) EXPECT_EQ(count, 1);
      }
    }
  }
}

TEST(TeamTest, UsesNoMoreThreadsThanAStepAsksFor) {
  Team team(4);
  for (const int count : {1, 2, 4})
    Threads(team, count).run(1000, [&](int64_t, int thread) { EXPECT_LT(thread, count); });
}

int64_t num_threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

TEST(TeamTest, StartsNoMoreThreadsThanALoopHasUseFor) {
  const int64_t before = num_threads_of_process();
  Team team(8);
  EXPECT_EQ(num_threads_of_process(), before);
  Threads(team).run(2, [](int64_t, int) {});
  const int64_t with_one = num_threads_of_process();
  EXPECT_LE(with_one, before + 2) << "a sanitizer may start one of its own";
  Threads(team, 3).run(100, [](int64_t, int) {});
  EXPECT_EQ(num_threads_of_process(), with_one + 1);
}

TEST(TeamTest, OfManyExceptionsTheFirstByTaskReachesTheCallerWhenAllHaveRun) {
  for (const int size : kSizes) {
    Team team(size);
    std::atomic<int> calls = 0;
    try {
      Threads(team).run(100, [&](int64_t task, int) {
        ++calls;
        if (task % 10 == 7) throw std::runtime_error(std::to_string(task));
      });
      ADD_FAILURE() << "nothing was thrown on " << size << " threads";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "7");
    }
    EXPECT_EQ(calls, 100);
    EXPECT_THROW(Threads(team).run(8, [](auto, int) { throw std::bad_alloc(); }), std::bad_alloc);
    Threads(team).run(8, [&](int64_t, int) { ++calls; });
    EXPECT_EQ(calls, 108) << "after an exception the team goes on";
  }
}

TEST(TeamTest, TheCallerTakesOverWhatALateThreadHasNotBegun) {
  Team team(2);
  Threads(team).run(2, [](int64_t, int) {});  // started
  std::atomic<bool> entered = false;
  std::atomic<int> of_caller = 0;
  Threads(team).run(8, [&](int64_t, int thread) {
    if (thread == 0) {
      while (!entered) std::this_thread::yield();
      ++of_caller;
      return;
    }
    entered = true;
    while (of_caller < 7) std::this_thread::yield();
  });
  EXPECT_EQ(of_caller, 7) << "all but the one that holds the other thread";
}

/// Starts a thread for each call, and counts them.
struct Spawner : Executor {
  int threads() const override { return 3; }
  void run(int count, const std::function<void(int)>& work) override {
    std::vector<std::thread> all;
    for (int i = 0; i < count; ++i) all.emplace_back([&work, i] { work(i); });
    for (std::thread& thread : all) thread.join();
    calls += count;
  }
  std::atomic<int> calls = 0;
};

/// One call after another, the last first.
struct Serial : Executor {
  int threads() const override { return 4; }
  void run(int count, const std::function<void(int)>& work) override {
    for (int i = count; i-- > 0;) work(i);
  }
};

TEST(TeamTest, AnEncoderRunsOnTheExecutorOfTheApplication) {
  ModelConfig config = small_config({.kind = PositionKind::kSinusoidal});
  config.d_model = 96;  // wide enough for several threads
  config.d_ff = 1536;
  const auto model = random_model(config, 72);
  const std::vector<TokenIds> texts = {random_ids(*model, 260, 1), random_ids(*model, 30, 2)};
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16, Precision::kInt8}) {
    Encoder alone(model, {.threads = 1, .precision = precision});
    const auto expected = hidden_of(alone.encode_ids(texts));
    const auto spawner = std::make_shared<Spawner>();
    for (const std::shared_ptr<Executor>& executor :
         {std::shared_ptr<Executor>(spawner), std::shared_ptr<Executor>(new Serial)}) {
      Encoder encoder(model, {.precision = precision, .executor = executor});
      EXPECT_EQ(encoder.threads(), executor->threads());
      on_threads(8, [&](int) {
        expect_same_bits(hidden_of(encoder.encode_ids(texts)), expected, "an executor");
      });
    }
    EXPECT_GT(spawner->calls, 0);
  }
}

/// Forgets the work.
struct Idle : Executor {
  int threads() const override { return 2; }
  void run(int, const std::function<void(int)>&) override {}
};

TEST(TeamTest, AnExecutorThatDoesNotWorkIsFound) {
  Team team(2, std::make_shared<Idle>());
  EXPECT_THROW(Threads(team).run(10, [](int64_t, int) {}), InvalidArgument);
}

// More callers than desks, and loops within loops.
TEST(TeamTest, ManyCallersAtOnceGetEveryTaskDoneOnce) {
  for (const int size : kSizes) {
    Team team(size);
    on_threads(8, [&](int caller) {
      for (int round = 0; round < 100; ++round) {
        std::array<std::atomic<int>, 20> calls = {};
        try {
          Threads(team).run(20, [&](int64_t task, int) {
            ++calls[task];
            if (task % 10 == 5) Threads(team).run(20, [&](int64_t inner, int) { ++calls[inner]; });
            if (task % 10 == 7) throw caller * 100 + task;
          });
          ADD_FAILURE() << "nothing was thrown";
        } catch (const int64_t thrown) {
          EXPECT_EQ(thrown, caller * 100 + 7);
        }
        for (const auto& count : calls) EXPECT_EQ(count, 3);
      }
    });
  }
}

TEST(TeamTest, HelpersJoinALoopWhileCallersLeaveThemCores) {
  for (const int size : {2, 4}) {
    Team team(size);
    std::latch held(2), leave(1), all(size);
    std::vector<std::jthread> callers;
    for (int i = 0; i < 2; ++i) {
      callers.emplace_back([&] {
        const Team::Caller caller(team);
        held.count_down();
        leave.wait();
      });
    }
    held.wait();
    const int others = std::max(0, size - 3);  // beside three callers
    std::atomic<int> inside = 0;
    Threads(team).run(30, [&](int64_t, int) {
      EXPECT_LE(++inside, 1 + others);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      --inside;
    });
    // These end only if so many threads are in the loop at once: first a helper, where there may be
    // one; then all, that are called when the callers leave after the loop has begun.
    std::latch both(1 + others);
    Threads(team).run(1 + others, [&](int64_t, int) { both.arrive_and_wait(); });
    Threads(team).run(size, [&](int64_t, int thread) {
      if (thread == 0) leave.count_down();
      all.arrive_and_wait();
    });
  }
}

TEST(TeamTest, HelpersComeBackFromEveryOtherLoop) {
  constexpr int kSize = 3;
  Team team(kSize);
  std::atomic<bool> end = false;
  std::jthread other([&] {
    while (!end) {
      Threads(team).run(4, [](int64_t, int) {});
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  });
  for (int round = 0; round < 1000; ++round) {
    std::latch all(kSize);  // in the loop at once, or it does not end
    Threads(team).run(kSize, [&](int64_t, int) { all.arrive_and_wait(); });
  }
  end = true;
}

TEST(TeamTest, EncodersOfOneExecutorShareItsThreadsAndKeepTheirBits) {
  constexpr int kThreads = 4, kModels = 3;
  const int64_t before = num_threads_of_process();
  const auto executor = make_executor(kThreads);
  EXPECT_EQ(executor->threads(), kThreads);
  std::atomic<int64_t> most = 0;
  on_threads(kModels, [&](int m) {
    const auto model = Model::load(bundled_model(std::array{"sinusoidal", "learned", "none"}[m]));
    const Encoder alone(model, {.threads = 1}), encoder(model, {.executor = executor});
    const std::vector<std::string> texts(40, "Tom bit a dog.");  // enough for all threads
    const std::vector<float> expected = alone.embed(texts).dense;
    for (int run = 0; run < 30; ++run) {
      expect_same_bits(encoder.embed(texts).dense, expected, "a model beside others");
      most = std::max<int64_t>(most, num_threads_of_process());
    }
  });
  EXPECT_LE(most, before + kModels + kThreads);
}

TEST(TeamTest, APoolKeepsNoMoreThanItHasPlaces) {
  static std::atomic<int> alive = 0;
  struct Counted {
    Counted() { ++alive; }
    ~Counted() { --alive; }
    bool taken = false;
  };
  {
    Pool<Counted> pool(3, [] { return std::make_unique<Counted>(); });
    std::latch all(64);
    on_threads(64, [&](int number) {
      for (int round = 0; round < 100; ++round) {
        const auto one = pool.take(number);
        EXPECT_FALSE(std::exchange(one->taken, true));
        if (round == 50) all.arrive_and_wait();
        one->taken = false;
      }
    });
    EXPECT_EQ(alive, 3);
  }
  EXPECT_EQ(alive, 0);
}

TEST(TeamTest, ZeroThreadsAreOneForEachCore) {
  EXPECT_EQ(team_size(0), num_cores());
  EXPECT_EQ(team_size(3), 3);
  EXPECT_THROW(team_size(-1), InvalidArgument);
  EXPECT_THROW(team_size(1025), InvalidArgument);
}

TEST(TeamTest, TheChildOfAForkStartsThreadsOfItsOwn) {
  const auto team = std::make_unique<Team>(3);
  std::atomic<int> calls = 0;
  const auto count = [&](int64_t, int) { ++calls; };
  Threads(*team).run(10, count);
  EXPECT_EQ(in_child([&] {
              Threads(*team).run(10, count);
              delete new Team(2);
              return calls == 20 ? 0 : 1;
            }),
            0);
  Threads(*team).run(10, count);
  EXPECT_EQ(calls, 20) << "the parent's threads are still there";
}

}  // namespace
}  // namespace phasor
