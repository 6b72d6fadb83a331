// Memory that is asked for once and reused: of packed weights, of a run, and of compiled plans.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace phasor::internal {

/// Memory for packed weights, which lives as long as the arena: few large pieces, on huge pages if
/// the system provides them. take() may be called by several threads.
class Arena {
 public:
  /// Aligned for oneDNN. Throws std::bad_alloc.
  void* take(size_t bytes);
  int64_t bytes() const { return bytes_; }  // handed out
  /// The bytes that take() counts for a request.
  static int64_t rounded(int64_t bytes);

 private:
  struct Free {
    void operator()(void* piece) const { std::free(piece); }
  };
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();  // an arena can be moved
  std::vector<std::unique_ptr<void, Free>> pieces_;
  std::byte* next_ = nullptr;  // in the last piece
  size_t left_ = 0;
  int64_t bytes_ = 0;
};

/// Memory that only grows: floats on whole pages from the system, because allocations of varying
/// size by several threads fragment the heap.
class ScratchBuffer {
 public:
  ScratchBuffer() = default;
  ScratchBuffer(ScratchBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}
  ScratchBuffer& operator=(ScratchBuffer&&) = delete;
  ~ScratchBuffer() { release(); }

  /// At least `count` floats. Growing discards the contents and starts with zeros, because the
  /// unused rows of a group are computed too. Throws std::bad_alloc.
  float* reserve(int64_t count) {
    if (count <= capacity_) return data_;
    release();
    void* const pages = mmap(nullptr, count * sizeof(float), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<float*>(pages);
    capacity_ = count;
    return data_;
  }
  /// At least that many bytes, for a oneDNN scratchpad; may be null for none.
  void* reserve_bytes(size_t bytes) {
    return reserve(static_cast<int64_t>((bytes + sizeof(float) - 1) / sizeof(float)));
  }
  float* data() const { return data_; }

 private:
  void release() {
    if (data_ != nullptr) munmap(data_, capacity_ * sizeof(float));
    data_ = nullptr;
    capacity_ = 0;
  }

  float* data_ = nullptr;
  int64_t capacity_ = 0;
};

/// The few most recently used values by key. Values are shared, so one in use survives its removal
/// from the cache.
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
