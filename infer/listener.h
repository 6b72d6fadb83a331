// What listens to an observed run: it keeps states, and sums attention up on the way.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "infer/observed.h"
#include "phasor/trace.h"

namespace infer {

/// Attention is summed up as it passes, so that the patterns (4·H·T² bytes a layer) are kept only
/// where they are wanted.
class Listener : public phasor::Observer {
 public:
  struct Wants {
    bool attention = false;  // sums
    bool patterns = false;   // whole, in trace()
  };

  /// `states` wants the hooks to be kept, patterns aside.
  Listener(phasor::Trace states, Wants wants) : trace_(std::move(states)), wants_(wants) {}
  bool wants(phasor::Hook hook, int64_t layer) const override;
  void observe(const phasor::HookEvent& event) override;

  const phasor::Trace& trace() const { return trace_; }
  ObservedAttention attention(int64_t layer, int64_t sequence) const;

 private:
  /// Of the windows of one text.
  struct Sum {
    std::map<int64_t, double> by_offset;
    double rows = 0;
  };
  phasor::Trace trace_;
  Wants wants_;
  std::map<std::pair<int64_t, int64_t>, Sum> sums_;  // layer, sequence
};

}  // namespace infer
