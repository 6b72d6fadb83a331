// Huge pages save ten thousand page faults for 40 MB of weights: half the time of packing.

#include "engine/memory.h"

#include <algorithm>

namespace phasor::internal {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPieceBytes = size_t{32} << 20;  // pages that are never written take no memory

size_t to_multiple(size_t bytes, size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

}  // namespace

int64_t Arena::rounded(int64_t bytes) {
  return static_cast<int64_t>(to_multiple(std::max<int64_t>(bytes, 1), kAlignment));
}

void* Arena::take(size_t bytes) {
  const std::lock_guard lock(*mutex_);
  bytes = rounded(static_cast<int64_t>(bytes));
  if (bytes > left_) {
    const size_t size = to_multiple(std::max(bytes, kPieceBytes), kHugePage);
    std::unique_ptr<void, Free> piece(std::aligned_alloc(kHugePage, size));
    if (piece == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    madvise(piece.get(), size, MADV_HUGEPAGE);  // failure does not matter
#endif
    pieces_.push_back(std::move(piece));
    next_ = static_cast<std::byte*>(pieces_.back().get());
    left_ = size;
  }
  left_ -= bytes;
  bytes_ += static_cast<int64_t>(bytes);
  return std::exchange(next_, next_ + bytes);
}

}  // namespace phasor::internal
