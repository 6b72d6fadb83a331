// The loop over threads: every task once, exceptions that come back to the caller, an application's
// executor, and the child of a fork. A program of its own, which .ci/run also runs under the thread
// sanitizer.
#include "engine/team.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <new>

#include "tests/support/encoder_cases.h"

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
  for (const int count : {1, 2, 4}) {
    Threads(team, count).run(1000, [&](int64_t, int thread) { EXPECT_LT(thread, count); });
  }
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
    EXPECT_THROW(Threads(team).run(8, [](int64_t, int) { throw std::bad_alloc(); }),
                 std::bad_alloc);
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
  int calls = 0;
};

/// One call after another, the last first.
struct Serial : Executor {
  int threads() const override { return 4; }
  void run(int count, const std::function<void(int)>& work) override {
    for (int i = count; i-- > 0;) work(i);
  }
};

TEST(TeamTest, AnEncoderRunsOnTheExecutorOfTheApplication) {
  ModelConfig config = small_config();
  config.d_model = 96;  // wide enough for several threads
  config.d_ff = 1536;
  config.position.kind = PositionKind::kSinusoidal;
  const auto model = random_model(config, 72);
  const std::vector<TokenIds> texts = {random_ids(*model, 260, 1), random_ids(*model, 30, 2)};
  Encoder alone(model, {.threads = 1});
  const auto expected = hidden_of(alone.encode_ids(texts));
  const auto spawner = std::make_shared<Spawner>();
  for (const std::shared_ptr<Executor>& executor :
       {std::shared_ptr<Executor>(spawner), std::shared_ptr<Executor>(new Serial)}) {
    Encoder encoder(model, {.executor = executor});
    EXPECT_EQ(encoder.threads(), executor->threads());
    Encoder replica = encoder.replica();
    expect_same_bits(hidden_of(encoder.encode_ids(texts)), expected, "an executor");
    expect_same_bits(hidden_of(replica.encode_ids(texts)), expected, "its replica");
  }
  EXPECT_GT(spawner->calls, 0);
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
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // rather killed than waiting for a thread that is not there
    Threads(*team).run(10, count);
    delete new Team(2);
    _exit(calls == 20 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  Threads(*team).run(10, count);
  EXPECT_EQ(calls, 20) << "the parent's threads are still there";
}

}  // namespace
}  // namespace phasor
