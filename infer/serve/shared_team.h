// The threads that the models of a server share.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "engine/team.h"
#include "phasor/executor.h"

namespace infer {

/// One team for several Encoders. A caller that finds it busy begins alone, and the team joins it
/// as soon as it is free: nobody waits to begin, and no large batch stays on one thread.
class SharedTeam : public phasor::Executor {
 public:
  /// 0: as many threads as cores. The caller of run() is one of them.
  explicit SharedTeam(int threads) : team_(phasor::internal::team_size(threads)) {}

  int threads() const override { return team_.size(); }
  void run(int count, const std::function<void(int)>& work) override;

 private:
  /// A run() that has begun alone; its calls 1 … count − 1 can still be made.
  struct Open {
    int count;
    const std::function<void(int)>& work;
    bool joined = false;  // by the team, which is not done with it
  };

  void join_oldest(const std::stop_token& stop);

  std::mutex team_mutex_;  // held by whoever runs on the team
  phasor::internal::Team team_;
  std::mutex open_mutex_;
  std::condition_variable_any changed_;
  std::deque<Open*> open_;  // of callers that are in run(), the oldest first; none that is joined
  std::once_flag busy_once_;
  std::jthread joiner_;  // from the first time that the team was busy; ends before what it uses
};

}  // namespace infer
