// What a part of a run is for: it is subtracted or replaced, and the run goes on without it.
//
// The difference in the loss on masked tokens (see prediction.h) is then what the part was for.
// Any change moves the states and costs something, so a part is compared with random rows of equal
// length at the same hook.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "phasor/encoder.h"
#include "phasor/trace.h"

namespace phasor {

/// Subtracts rows from the values at one hook of a run: RunOptions::observer for encode_ids().
class Subtraction : public Observer {
 public:
  /// `parts` has the rows [T, C] of each sequence of the batch. `layer` is −1 outside blocks. The
  /// run throws InvalidArgument where a part has other rows than the hook.
  Subtraction(Hook hook, int64_t layer, std::vector<std::vector<float>> parts)
      : hook_(hook), layer_(layer), parts_(std::move(parts)) {}

  bool wants(Hook, int64_t) const override { return false; }
  void observe(const HookEvent&) override {}
  bool changes(Hook hook, int64_t layer) const override { return hook == hook_ && layer == layer_; }
  void change(const HookEvent& event, std::span<float> values) override;

 private:
  Hook hook_;
  int64_t layer_;
  std::vector<std::vector<float>> parts_;
};

/// Puts the values of another run of the same sequences in the place of those at one hook, which
/// `trace` has recorded (activation patching: Vig et al. 2020, arXiv 2004.12265). Borrows the
/// trace.
class Patch : public Observer {
 public:
  Patch(Hook hook, int64_t layer, const Trace& trace) : hook_(hook), layer_(layer), trace_(trace) {}

  bool wants(Hook, int64_t) const override { return false; }
  void observe(const HookEvent&) override {}
  bool changes(Hook hook, int64_t layer) const override { return hook == hook_ && layer == layer_; }
  /// Throws InvalidArgument where the trace lacks the values or has others.
  void change(const HookEvent& event, std::span<float> values) override;

 private:
  Hook hook_;
  int64_t layer_;
  const Trace& trace_;
};

/// Random rows, drawn from `seed`, where those of `rows` [T, C] are not 0: the control of a
/// Subtraction. Their mean has the norm of the mean of `rows`, and what is left without it has, all
/// rows together, the same norm, too.
std::vector<float> random_rows(std::span<const float> rows, int64_t d_model, uint64_t seed);

/// What each head adds to kAttnOut of `layer`, z_h W_O,h: [H] of [T, C]. With the bias of the
/// output matrix they sum to it. `trace` holds kZ of a run of `model`. Throws InvalidArgument if it
/// does not.
std::vector<std::vector<float>> head_outputs(const Model& model, const Trace& trace, int64_t layer,
                                             int64_t sequence = 0);

}  // namespace phasor
