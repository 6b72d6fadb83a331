// A trace: an observer that records values by hook, layer and sequence.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "phasor/hooks.h"

namespace [[gnu::visibility("default")]] phasor {

/// A recorded run. Holds everything in memory: a pattern costs 4·H·T² bytes a layer.
///
///     Trace trace{Hook::kFullEmbed, Hook::kResidPost};
///     encoder.encode(text, {.observer = &trace});
///     trace.at(Hook::kResidPost, layer).values;   // [T, C]
///
/// The windows of Overflow::kWindow are merged: each element is the mean over the windows that
/// computed it, and 0 if none did (scores between tokens that never shared a window).
class Trace : public Observer {
 public:
  /// The values of one hook, layer and sequence.
  struct Entry {
    std::vector<int64_t> shape;
    std::vector<float> values;  // row-major
  };

  /// Keeps these hooks at every layer.
  Trace(std::initializer_list<Hook> hooks) : hooks_(hooks) {}
  explicit Trace(std::vector<Hook> hooks) : hooks_(std::move(hooks)) {}
  /// Keeps what Transformers calls hidden_states and attentions.
  static Trace hidden_states_and_attentions();
  /// Keeps every hook.
  static Trace everything();

  bool wants(Hook hook, int64_t layer) const override;
  void observe(const HookEvent& event) override;

  /// `layer` is ignored outside blocks. Throws InvalidArgument if nothing was recorded.
  const Entry& at(Hook hook, int64_t layer = -1, int64_t sequence = 0) const;
  bool has(Hook hook, int64_t layer = -1, int64_t sequence = 0) const;
  /// Transformers' hidden_states[l], l = 0 … num_layers(): [T, C]. Wants kFullEmbed, kResidPost,
  /// kNormalizedResidPost and kFinalNorm.
  const Entry& hidden_state(int64_t l, int64_t sequence = 0) const;
  int64_t num_layers() const { return num_layers_; }  // of the blocks seen
  void clear();

 private:
  struct Sum {
    Entry entry;
    std::vector<float> counts;  // per element; empty as long as there was only one window
  };
  std::vector<Hook> hooks_;
  std::map<std::tuple<Hook, int64_t, int64_t>, Sum> entries_;  // hook, layer, sequence
  int64_t num_layers_ = 0;
};

}  // namespace phasor
