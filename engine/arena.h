// Memory for packed weights: few large pieces, on huge pages if the system provides them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

namespace phasor::internal {

/// Provides memory that lives as long as the arena. take() may be called by several threads.
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

}  // namespace phasor::internal
