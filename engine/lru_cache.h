// The few most recently used values by key: bounds how many compiled plans stay in memory.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <utility>

namespace phasor::internal {

/// Values are shared, so one that is in use outlives its place in the cache.
template <typename Key, typename Value>
class LruCache {
 public:
  explicit LruCache(size_t capacity) : capacity_(capacity) {}

  /// The value of `key`, made by make() where it is not there.
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
