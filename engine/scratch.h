// Memory that is allocated once and reused: aligned, grow-only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace phasor {

/// num() floats or more, on a cache line. Growing throws away the contents.
class ScratchBuffer {
 public:
  /// At least `count` floats.
  float* reserve(int64_t count) {
    if (count > capacity_) {
      data_.reset();
      data_.reset(static_cast<float*>(::operator new(count * sizeof(float), kAlignment)));
      capacity_ = count;
      std::fill_n(data_.get(), count, 0.0f);  // rows of no token are computed with what lies there
    }
    return data_.get();
  }
  float* data() const { return data_.get(); }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(float* data) const { ::operator delete(data, kAlignment); }
  };
  std::unique_ptr<float, Free> data_;
  int64_t capacity_ = 0;
};

}  // namespace phasor
