// Bytes that requests may take together.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace infer {

/// Counts what requests take before they take it: their texts, their results and their answers,
/// until these have been sent. Any thread.
class Budget {
 public:
  explicit Budget(int64_t limit) : limit_(limit) {}

  int64_t limit() const { return limit_; }

  /// What one request has of the budget. Gives it back when it ends, even after the budget's end.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : used_(std::move(other.used_)), bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&& other) noexcept {
      release();
      used_ = std::move(other.used_);
      bytes_ = std::exchange(other.bytes_, 0);
      return *this;
    }
    ~Share() { release(); }

    int64_t bytes() const { return bytes_; }

   private:
    friend class Budget;
    void release() {
      if (used_) *used_ -= std::exchange(bytes_, 0);
    }

    std::shared_ptr<std::atomic<int64_t>> used_;
    int64_t bytes_ = 0;
  };

  /// Whether the share now has so many bytes. False, with the share as it was, where others have
  /// taken too much. Less than it had is always granted.
  bool resize(Share& share, int64_t bytes) {
    const int64_t more = bytes - share.bytes_;
    int64_t used = *used_;
    do {
      if (more > 0 && more > limit_ - used) return false;
    } while (!used_->compare_exchange_weak(used, used + more));
    share.used_ = used_;
    share.bytes_ = bytes;
    return true;
  }

 private:
  const int64_t limit_;
  std::shared_ptr<std::atomic<int64_t>> used_ = std::make_shared<std::atomic<int64_t>>(0);
};

}  // namespace infer
