// The few most recently used values by key: limits the compiled plans in memory.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <utility>

namespace phasor::internal {

/// Values are shared, so one in use survives its removal from the cache.
template <typename Key, typename Value>
class LruCache {
 public:
  explicit LruCache(size_t capacity) : capacity_(capacity) {}

  /// The value of `key`, created by make() if it is missing.
  template <typename Make>
  std::shared_ptr<Value> get(const Key& key, Make make) {
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->first == key) {
        entries_.splice(entries_.begin(), entries_, it);
        return entries_.front().second;
      }
    }
    entries_.emplace_front(key, make());
    if (entries_.size() > capacity_) entries_.pop_back();
    return entries_.front().second;
  }

 private:
  size_t capacity_;
  std::list<std::pair<Key, std::shared_ptr<Value>>> entries_;  // most recent first
};

}  // namespace phasor::internal
