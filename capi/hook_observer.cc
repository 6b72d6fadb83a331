#include "capi/hook_observer.h"

#include <fmt/format.h>

#include "capi/arguments.h"
#include "capi/handles.h"
#include "phasor/errors.h"

namespace phasor::internal {

HookObserver::HookObserver(std::span<const phasor_hook> hooks, std::span<const char* const> record,
                           int64_t num_layers)
    : places_((1 + num_layers) * kNumHooks), trace_(Trace::everything()) {
  const auto for_places = [&](const char* name, auto visit) {
    require(name, "the name of a hook");
    for (const HookPoint& point : find_hooks(name, num_layers)) {
      Place& at = places_[number(point.hook, point.layer)];
      at.point = point;
      at.path = hook_path(point.hook, point.layer);
      visit(at);
    }
  };
  for (const phasor_hook& hook : hooks) {
    if (hook.function == nullptr) throw InvalidArgument("the function of a hook is NULL");
    for_places(hook.name, [&](Place& at) {
      (hook.change != 0 ? at.changing : at.observing).push_back(&hook);
    });
  }
  for (const char* const name : record) {
    for_places(name, [](Place& at) { at.recorded = true; });
  }
}

bool HookObserver::wants(Hook hook, int64_t layer) const {
  const Place& at = places_[number(hook, layer)];
  return at.recorded || !at.observing.empty();
}

bool HookObserver::changes(Hook hook, int64_t layer) const {
  return !places_[number(hook, layer)].changing.empty();
}

void HookObserver::observe(const HookEvent& event) {
  const Place& at = places_[number(event.hook, event.layer)];
  call(at.observing, at, event, nullptr);
  if (at.recorded) trace_.observe(event);
}

void HookObserver::change(const HookEvent& event, std::span<float> values) {
  const Place& at = places_[number(event.hook, event.layer)];
  call(at.changing, at, event, values.data());
}

void HookObserver::call(const std::vector<const phasor_hook*>& hooks, const Place& place,
                        const HookEvent& event, float* changeable) {
  if (hooks.empty()) return;
  const phasor_hook_event passed = {
      .size = sizeof(phasor_hook_event),
      .name = place.path.c_str(),
      .text = event.sequence,
      .first_token = event.first_token,
      .array = array_of(event.values.data(), {event.shape.begin(), event.shape.end()}),
      .changeable = changeable};
  for (const phasor_hook* const hook : hooks) {
    if (hook->function(hook->user, &passed) == 0) continue;
    throw Error(ErrorCode::kCancelled, fmt::format("a function at {} ended the run", place.path));
  }
}

void HookObserver::finish(int64_t num_texts, phasor_result& result) {
  const Trace& trace = result.keep(std::move(trace_));
  for (const Place& at : places_) {
    for (int64_t text = 0; at.recorded && text < num_texts; ++text) {
      if (!trace.has(at.point.hook, at.point.layer, text)) continue;
      const Trace::Entry& entry = trace.at(at.point.hook, at.point.layer, text);
      result.borrow(at.path, text, array_of(entry.values.data(), entry.shape));
    }
  }
}

}  // namespace phasor::internal
