#include "infer/serve/shared_team.h"

#include <cstdint>

namespace infer {

void SharedTeam::run(int count, const std::function<void(int)>& work) {
  if (const std::unique_lock team(team_mutex_, std::try_to_lock); team.owns_lock()) {
    return team_.run(count, count, [&](int64_t call, int) { work(static_cast<int>(call)); });
  }
  if (count == 1) return work(0);
  std::call_once(busy_once_, [this] {
    joiner_ = std::jthread([this](const std::stop_token& stop) { join_oldest(stop); });
  });
  Open open{count, work};
  {
    const std::lock_guard lock(open_mutex_);
    open_.push_back(&open);
  }
  changed_.notify_all();
  work(0);
  std::unique_lock lock(open_mutex_);
  std::erase(open_, &open);
  changed_.wait(lock, [&] { return !open.joined; });
}

void SharedTeam::join_oldest(const std::stop_token& stop) {
  std::unique_lock lock(open_mutex_);
  while (changed_.wait(lock, stop, [&] { return !open_.empty(); })) {
    lock.unlock();
    const std::lock_guard team(team_mutex_);
    lock.lock();
    if (open_.empty()) continue;  // done in the meantime
    Open& open = *open_.front();
    open_.pop_front();
    open.joined = true;
    lock.unlock();
    const int rest = open.count - 1;
    team_.run(rest, rest, [&](int64_t call, int) { open.work(static_cast<int>(call) + 1); });
    lock.lock();
    open.joined = false;
    changed_.notify_all();
  }
}

}  // namespace infer
