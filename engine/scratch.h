// Memory that is allocated once and reused; aligned, and only grows.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace phasor::internal {

/// Floats on whole pages from the system, because allocations of varying size by several threads
/// fragment the heap.
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

}  // namespace phasor::internal
