// A run's observer as the forward pass sees it: one question and one announcement for each hook.
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <mutex>
#include <vector>

#include "engine/batch.h"
#include "phasor/hooks.h"

namespace phasor::internal {

/// Asks an observer what it wants before the run, then hands it what it asked for, one event at a
/// time whatever the number of threads. Without an observer every question is answered no.
class Watch {
 public:
  Watch(Observer* observer, int64_t num_layers);

  bool active() const { return observer_ != nullptr; }
  bool wants(Hook hook, int64_t layer = -1) const;
  /// Whether it is wanted at any layer.
  bool wants_anywhere(Hook hook) const;

  /// Announces `values` [N, …], whose rows belong to the segments one after the other; row_shape
  /// are the dimensions of one row.
  void rows(Hook hook, int64_t layer, const std::vector<Segment>& segments, const float* values,
            std::initializer_list<int64_t> row_shape) const;
  /// Announces `map` [H, T, T] of one segment.
  void attention_map(Hook hook, int64_t layer, const Segment& segment, const float* map,
                     int64_t num_heads) const;

 private:
  /// Once observe() has thrown, this throws the same to every thread.
  void tell(const HookEvent& event) const;
  size_t index(Hook hook, int64_t layer) const {
    return static_cast<size_t>((layer + 1) * kNumHooks + static_cast<int64_t>(hook));
  }

  Observer* observer_;
  std::vector<bool> wanted_;  // [1 + L, kNumHooks], row 0 for hooks outside blocks
  mutable std::mutex mutex_;  // held while the observer listens
  mutable std::exception_ptr failure_;
};

}  // namespace phasor::internal
