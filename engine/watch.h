// A run's observer, as the forward pass uses it.
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <mutex>
#include <vector>

#include "engine/batch.h"
#include "phasor/hooks.h"

namespace phasor::internal {

/// Asks an observer what it wants before the run, then passes it those values, one event at a time
/// for any number of threads. Without an observer nothing is wanted.
class Watch {
 public:
  Watch(Observer* observer, int64_t num_layers);

  bool active() const { return observer_ != nullptr; }
  bool wants(Hook hook, int64_t layer = -1) const;
  /// Whether the hook is wanted at any layer.
  bool wants_anywhere(Hook hook) const;

  /// Passes on `values` [N, …], whose rows belong to the segments one after the other; row_shape
  /// holds the dimensions of one row.
  void rows(Hook hook, int64_t layer, const std::vector<Segment>& segments, const float* values,
            std::initializer_list<int64_t> row_shape) const;
  /// Passes on `map` [H, T, T] of one segment.
  void attention_map(Hook hook, int64_t layer, const Segment& segment, const float* map,
                     int64_t num_heads) const;

 private:
  /// After observe() has thrown, this throws the same exception in every thread.
  void tell(const HookEvent& event) const;
  size_t index(Hook hook, int64_t layer) const {
    return static_cast<size_t>((layer + 1) * kNumHooks + static_cast<int64_t>(hook));
  }

  Observer* observer_;
  std::vector<bool> wanted_;  // [1 + L, kNumHooks], row 0 for hooks outside blocks
  mutable std::mutex mutex_;  // held during observe()
  mutable std::exception_ptr failure_;
};

}  // namespace phasor::internal
