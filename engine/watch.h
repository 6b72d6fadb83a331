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

/// Asks an observer for its hooks before the run, then passes it their values, one event at a time
/// for any number of threads. Without an observer nothing is wanted.
class Watch {
 public:
  Watch(Observer* observer, int64_t num_layers);

  bool active() const { return observer_ != nullptr; }
  /// Whether the observer sees or changes the hook's values.
  bool wants(Hook hook, int64_t layer = -1) const {
    return is(kSees, hook, layer) || changes(hook, layer);
  }
  bool changes(Hook hook, int64_t layer = -1) const { return is(kChanges, hook, layer); }
  /// Whether the hook is wanted at any layer.
  bool wants_anywhere(Hook hook) const { return is_anywhere(kSees | kChanges, hook); }
  bool changes_anywhere(Hook hook) const { return is_anywhere(kChanges, hook); }

  /// Passes on `values` [N, …], whose rows belong to the segments one after the other; row_shape
  /// holds the dimensions of one row. The observer may change them.
  void rows(Hook hook, int64_t layer, const std::vector<Segment>& segments, float* values,
            std::initializer_list<int64_t> row_shape) const;
  /// Passes on `map` [H, T, T] of one segment.
  void attention_map(Hook hook, int64_t layer, const Segment& segment, float* map,
                     int64_t num_heads) const;

 private:
  enum Right : uint8_t { kSees = 1, kChanges = 2 };
  bool is(Right right, Hook hook, int64_t layer) const {
    return active() && (rights_[index(hook, layer)] & right) != 0;
  }
  bool is_anywhere(int rights, Hook hook) const;
  /// After the observer has thrown, this throws the same exception in every thread.
  void tell(const HookEvent& event, std::span<float> values) const;
  size_t index(Hook hook, int64_t layer) const {
    return static_cast<size_t>((layer + 1) * kNumHooks + static_cast<int64_t>(hook));
  }

  Observer* observer_;
  std::vector<uint8_t> rights_;  // [1 + L, kNumHooks], row 0 for hooks outside blocks
  mutable std::mutex mutex_;     // held during observe() and change()
  mutable std::exception_ptr failure_;
};

}  // namespace phasor::internal
