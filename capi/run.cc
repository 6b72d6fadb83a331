// Runs: hidden states of texts and token ids, with hooks.
#include "capi/boundary.h"
#include "phasor/trace.h"

namespace phasor::internal {
namespace {

/// The observer of a run: its hooks, and what it records.
class HookObserver : public Observer {
 public:
  /// Borrows both. Throws InvalidArgument for a name that is no hook of a model with so many
  /// layers, and a hook without function.
  HookObserver(std::span<const phasor_hook> hooks, std::span<const char* const> record,
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
    for (const char* const name : record) for_places(name, [](Place& at) { at.recorded = true; });
  }

  bool wants(Hook hook, int64_t layer) const override {
    const Place& at = places_[number(hook, layer)];
    return at.recorded || !at.observing.empty();
  }
  bool changes(Hook hook, int64_t layer) const override {
    return !places_[number(hook, layer)].changing.empty();
  }
  void observe(const HookEvent& event) override {
    const Place& at = places_[number(event.hook, event.layer)];
    call(at.observing, at, event, nullptr);
    if (at.recorded) trace_.observe(event);
  }
  void change(const HookEvent& event, std::span<float> values) override {
    const Place& at = places_[number(event.hook, event.layer)];
    call(at.changing, at, event, values.data());
  }

  /// Adds what was recorded to a result, which keeps it.
  void finish(int64_t num_texts, phasor_result& result) {
    const Trace& trace = result.keep(std::move(trace_));
    for (const Place& at : places_) {
      for (int64_t text = 0; at.recorded && text < num_texts; ++text) {
        if (!trace.has(at.point.hook, at.point.layer, text)) continue;
        const Trace::Entry& entry = trace.at(at.point.hook, at.point.layer, text);
        result.borrow(at.path, text, array_of(entry.values.data(), entry.shape));
      }
    }
  }

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
      throw Error(ErrorCode::kCancelled, "a function at " + place.path + " ended the run");
    }
  }

  std::vector<Place> places_;  // [1 + L, kNumHooks], row 0 for hooks outside blocks
  Trace trace_;
};

/// What phasor_run_options say, and the observer that they need.
struct Run {
  Run(const phasor_run_options* given, const Model& model)
      : c(options_of(given, "phasor_run_options", &phasor_run_options::reserved)),
        d_model(model.config().d_model),
        observer(array_at(c.hooks, c.num_hooks, "hooks"),
                 array_at(c.record, c.num_record, "recorded hooks"), model.config().num_layers) {
    options.observer = c.num_hooks + c.num_record > 0 ? &observer : nullptr;
    options.positions = positions_of(c.positions, model.config().position);
    options.overflow = value_of(c.overflow, Overflow::kError);
    options.cut_residuals = cuts_of(c);
    options.hidden = array_if_given(c.hidden, c.hidden_size, "floats for hidden states");
    options.token_types = array_if_given(c.token_types, c.num_token_types, "token types");
    options.stop = stop_of(c.stop);
    options.parse_special = c.parse_special != 0;
  }

  void finish(Encoding encoding, phasor_result& result) {
    const Encoding& kept = result.keep(std::move(encoding));
    const int64_t tokens = kept.offsets.back();
    const float* const hidden = c.hidden != nullptr ? c.hidden : kept.hidden.data();
    result.borrow("hidden", -1, array_of(hidden, {tokens, d_model}));
    result.borrow("offsets", -1, array_of(kept.offsets.data(), {kept.size() + 1}));
    result.borrow("token_ids", -1, array_of(kept.token_ids.data(), {tokens}));
    result.borrow("positions", -1, array_of(kept.positions.data(), {tokens}));
    observer.finish(kept.size(), result);
  }

  phasor_run_options c;
  int64_t d_model;
  HookObserver observer;
  RunOptions options = {};
};

}  // namespace
}  // namespace phasor::internal

extern "C" {

using namespace phasor::internal;  // NOLINT

phasor_status phasor_encode(phasor_encoder* encoder, const phasor_texts* texts,
                            const phasor_run_options* options, phasor_result** result) {
  return make_result(result, [&](phasor_result& made) {
    require(encoder, "the encoder");
    Run run(options, encoder->encoder.model());
    run.finish(encoder->encoder.encode(texts_of(texts, "texts"), run.options), made);
  });
}

phasor_status phasor_encode_ids(phasor_encoder* encoder, const int32_t* token_ids,
                                const int64_t* offsets, int64_t num_texts,
                                const phasor_run_options* options, phasor_result** result) {
  return make_result(result, [&](phasor_result& made) {
    require(encoder, "the encoder");
    check_count("offsets", offsets, num_texts);
    const auto places = array_at(offsets, num_texts + 1, "offsets");
    Run run(options, encoder->encoder.model());
    const auto ids = array_at(token_ids, places.back(), "token ids");
    run.finish(encoder->encoder.encode_ids(ids, places, run.options), made);
  });
}

}  // extern "C"
