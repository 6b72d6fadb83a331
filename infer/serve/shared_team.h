// The threads that the models of a server share.
#pragma once

#include <functional>
#include <mutex>

#include "engine/team.h"
#include "phasor/executor.h"

namespace infer {

/// One team for several Encoders. A caller that finds it busy does its call of run() alone: a small
/// batch one step, a large one, which is a single call, to its end. So it begins at once, and takes
/// longer.
class SharedTeam : public phasor::Executor {
 public:
  /// 0: as many threads as cores. The caller of run() is one of them.
  explicit SharedTeam(int threads) : team_(phasor::internal::team_size(threads)) {}

  int threads() const override { return team_.size(); }
  void run(int count, const std::function<void(int)>& work) override {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return work(0);
    team_.run(count, count, [&](int64_t call, int) { work(static_cast<int>(call)); });
  }

 private:
  std::mutex mutex_;
  phasor::internal::Team team_;
};

}  // namespace infer
