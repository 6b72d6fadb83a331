// What listens to an observed run: it keeps states, and sums attention up on the way.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "phasor/lens.h"
#include "phasor/trace.h"

namespace phasor::internal {

/// Where a block's attention goes, over all heads and rows; a row of several windows counts once
/// for each.
struct ObservedAttention {
  std::map<int64_t, double> by_offset;  // a(δ) of attention_by_offset()
  double distance = 0;                  // in tokens
  double entropy_share = 0;             // mean over heads and rows, of ln T
  // Empty where the text was run in windows:
  std::vector<HeadProfile> heads = {};  // [H]
};

/// Attention is summed up as it passes, so that the patterns (4·H·T² bytes a layer) are kept only
/// where they are wanted.
class RunObserver : public Observer {
 public:
  struct Wants {
    bool attention = false;  // sums
    bool patterns = false;   // whole, in trace()
  };

  /// `states` wants the hooks to be kept, patterns aside; `special` are the places of each
  /// sequence's special tokens.
  RunObserver(Trace states, Wants wants, std::vector<std::vector<int64_t>> special)
      : trace_(std::move(states)), wants_(wants), special_(std::move(special)) {}
  bool wants(Hook hook, int64_t layer) const override;
  void observe(const HookEvent& event) override;

  const Trace& trace() const { return trace_; }
  ObservedAttention attention(int64_t layer, int64_t sequence) const;

 private:
  /// Of the windows of one text.
  struct Sum {
    /// Of an offset, over the rows that have such a token.
    struct Offset {
      double weight = 0, rows = 0;
    };
    std::map<int64_t, Offset> by_offset;
    double distance = 0, entropy_share = 0, rows = 0;  // the first two times rows
    int windows = 0;
    std::vector<HeadProfile> heads;  // of the last window, as the mean pattern
  };
  Trace trace_;
  Wants wants_;
  std::vector<std::vector<int64_t>> special_;
  std::map<std::pair<int64_t, int64_t>, Sum> sums_;  // layer, sequence
};

}  // namespace phasor::internal
