// Bytes that requests may take together.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace infer {

/// Counts what requests take before they take it: their bodies, texts, results and answers, until
/// these have been sent. Any thread.
class Budget {
 public:
  explicit Budget(int64_t limit) : limit_(limit) {}

  int64_t limit() const { return limit_; }
  int64_t used() const { return used_; }

  /// What one request has of the budget, which outlives it. Gives it back when it ends.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (bytes_ > 0) budget_->used_ -= bytes_;
    }

    int64_t bytes() const { return bytes_; }

   private:
    friend class Budget;
    Budget* budget_ = nullptr;
    int64_t bytes_ = 0;
  };

  /// Whether the share now has so many bytes. False, with the share as it was, where others have
  /// taken too much. Less than it had is always granted.
  bool resize(Share& share, int64_t bytes) {
    const int64_t more = bytes - share.bytes_;
    int64_t used = used_;
    do {
      if (more > 0 && more > limit_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + more));
    share.budget_ = this;
    share.bytes_ = bytes;
    return true;
  }

 private:
  const int64_t limit_;
  std::atomic<int64_t> used_ = 0;
};

}  // namespace infer
