// The observer of a run of the C interface: its hooks, and what it records.
#pragma once

#include <string>
#include <vector>

#include "phasor/phasor_c.h"
#include "phasor/trace.h"

namespace phasor::internal {

class HookObserver : public Observer {
 public:
  /// Borrows both. Throws InvalidArgument for a name that is no hook of a model with so many
  /// layers, and a hook without function.
  HookObserver(std::span<const phasor_hook> hooks, std::span<const char* const> record,
               int64_t num_layers);

  bool wants(Hook hook, int64_t layer) const override;
  bool changes(Hook hook, int64_t layer) const override;
  void observe(const HookEvent& event) override;
  void change(const HookEvent& event, std::span<float> values) override;

  /// Adds what was recorded to a result, which keeps it.
  void finish(int64_t num_texts, phasor_result& result);

 private:
  /// What happens at a hook.
  struct Place {
    HookPoint point;
    std::string path;  // empty: nothing happens
    std::vector<const phasor_hook*> observing = {}, changing = {};
    bool recorded = false;
  };
  static size_t number(Hook hook, int64_t layer) {
    return (layer + 1) * kNumHooks + static_cast<size_t>(hook);
  }
  static void call(const std::vector<const phasor_hook*>& hooks, const Place& place,
                   const HookEvent& event, float* changeable);

  std::vector<Place> places_;  // [1 + L, kNumHooks], row 0 for hooks outside blocks
  Trace trace_;
};

}  // namespace phasor::internal
