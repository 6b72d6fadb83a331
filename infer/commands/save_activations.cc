#include "infer/commands/save_activations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>
#include <utility>

#include "infer/cli/save.h"
#include "phasor/version.h"

namespace infer {
namespace {

using phasor::Hook;

/// Keeps what is to be saved.
class HookTrace : public phasor::Trace {
 public:
  HookTrace(const std::vector<std::string>& names, int64_t num_layers)
      : Trace(names.empty() ? hidden_states_and_attentions() : everything()) {
    for (const std::string& name : names) {
      for (const auto& [hook, layer] : phasor::find_hooks(name, num_layers)) {
        points_.emplace(hook, layer);
      }
    }
  }

  bool wants(Hook hook, int64_t layer) const override {
    return points_.empty() ? Trace::wants(hook, layer) : points_.contains({hook, layer});
  }

 private:
  std::set<std::pair<Hook, int64_t>> points_;  // empty: those of Trace
};

/// Named tensors, and the memory of those that are nobody else's.
class Tensors {
 public:
  template <typename T>
  void borrow(const std::string& name, std::vector<int64_t> shape, std::span<const T> values) {
    tensors_.emplace_back(prefix + name, std::move(shape), values);
  }
  void borrow(const std::string& name, const phasor::Trace::Entry& entry) {
    borrow(name, entry.shape, std::span<const float>(entry.values));
  }
  template <typename Values>
  void copy(const std::string& name, std::vector<int64_t> shape, const Values& values) {
    borrow(name, std::move(shape),
           std::span<const float>(floats_.emplace_back(values.begin(), values.end())));
  }
  void add_ids(const phasor::Encoding& encoding, int64_t i) {
    const std::vector<int64_t> shape = {encoding[i].num_tokens()};
    borrow("token_ids", shape, encoding[i].token_ids);
    std::vector<int32_t>& rows = integers_.emplace_back();
    for (const float p : encoding[i].positions)
      rows.push_back(static_cast<int32_t>(std::lround(p)));
    borrow("position_ids", shape, std::span<const int32_t>(rows));
  }
  std::span<const SavedTensor> all() const { return tensors_; }

  std::string prefix;

 private:
  std::vector<SavedTensor> tensors_;
  std::deque<std::vector<float>> floats_;
  std::deque<std::vector<int32_t>> integers_;
};

/// Sequence i's states and attentions under Transformers' names, and its vector, which models for
/// other kinds of vectors lack.
void add_states(const phasor::Encoding& encoding, const phasor::Trace& trace, int64_t i,
                const phasor::Model& model, Tensors& tensors) {
  for (int64_t l = 0; l <= trace.num_layers(); ++l) {
    tensors.borrow(fmt::format("hidden_states.{}", l), trace.hidden_state(l, i));
  }
  for (int64_t l = 0; l < trace.num_layers(); ++l) {
    tensors.borrow(fmt::format("attentions.{}", l), trace.at(Hook::kPattern, l, i));
  }
  const std::span<const float> hidden = encoding[i].hidden;
  tensors.borrow("last_hidden_state", {encoding[i].num_tokens(), encoding.d_model}, hidden);
  if (!model.has_sentence()) return;
  const std::vector<float> vector = pool(hidden, encoding.d_model, model.sentence().pooling);
  tensors.copy("embedding", {std::ssize(vector)}, vector);
}

/// Under TransformerLens' names.
void add_hooks(const phasor::Trace& trace, int64_t i, Tensors& tensors) {
  for (const auto& [hook, layer] : phasor::find_hooks("all", trace.num_layers())) {
    if (!trace.has(hook, layer, i)) continue;
    tensors.borrow(phasor::hook_path(hook, layer), trace.at(hook, layer, i));
  }
}

void add_measured(const Observed& text, Tensors& tensors) {
  if (const int64_t values = std::ssize(text.position_vectors); values > 0) {
    tensors.copy("position_vectors", {text.num_tokens, values / text.num_tokens},
                 text.position_vectors);
  }
  for (size_t l = 0; l < text.position_means.size(); ++l) {
    tensors.copy(fmt::format("split.position.{}", l), {std::ssize(text.text_tokens), text.d_model},
                 text.position_means[l]);
  }
}

phasor::Encoding run_batch(const lens::Run& run, std::span<const std::vector<Observed>> texts,
                           size_t side, HookTrace& trace) {
  phasor::RunOptions options = run.options;
  options.observer = &trace;
  std::vector<std::vector<int32_t>> sequences;
  for (const std::vector<Observed>& text : texts) sequences.push_back(text[side].tokens.ids);
  return run.encoder->encode_ids(sequences, options);
}

std::map<std::string, std::string> metadata(const lens::Run& run,
                                            const phasor::Encoding& encoding) {
  const phasor::PositionConfig& own = run.model().config().position;
  const std::string layout = phasor::internal::layout_name(own, run.options.positions);
  const bool replaced = layout != phasor::internal::layout_name(own, {});
  const int64_t first =  // the first token's row
      replaced ? std::lround(encoding[0].positions.front()) : own.first_position;
  return {{"model", run.name},
          {"layout", layout},
          {"first_position", fmt::format("{}", first)},
          {"precision", std::string(phasor::to_string(run.encoder->precision()))},
          {"version", PHASOR_VERSION}};
}

/// Of `observed`, [texts] of [runs].
void save_activations(const InputOptions& options, std::span<const lens::Run> runs,
                      std::span<const std::vector<Observed>> observed) {
  const std::vector<std::string>& hooks = options.hooks;
  Tensors tensors;
  std::deque<HookTrace> traces;  // what the tensors borrow from
  std::deque<phasor::Encoding> encodings;
  for (size_t side = 0; side < runs.size(); ++side) {
    const lens::Run& run = runs[side];
    size_t number = 0;
    for (const std::span<const std::vector<Observed>> batch :
         phasor::internal::batches_of(observed)) {
      HookTrace& trace = traces.emplace_back(hooks, run.model().config().num_layers);
      const phasor::Encoding& encoding = encodings.emplace_back(run_batch(run, batch, side, trace));
      for (int64_t i = 0; i < encoding.size(); ++i, ++number) {
        tensors.prefix = fmt::format("{}.{}{}", number, run.label, run.label.empty() ? "" : ".");
        tensors.add_ids(encoding, i);
        if (hooks.empty()) {
          add_states(encoding, trace, i, run.model(), tensors);
        } else {
          add_hooks(trace, i, tensors);
        }
        add_measured(observed[number][side], tensors);
      }
    }
  }
  save("--save", options.save, tensors.all(), metadata(runs[0], encodings.at(0)));
}

}  // namespace

void observe_and_save(const InputOptions& options, std::span<const lens::Run> runs,
                      std::span<const lens::Text> texts, lens::ObserveOptions how, bool arrays,
                      const std::function<bool(const std::vector<Observed>&)>& show) {
  const bool saves = !options.save.empty();
  const bool patterns = std::ranges::count(how.views, "pattern") > 0;
  const int64_t on_page = how.arrays_of;
  if (saves) how.arrays_of = std::ssize(texts);
  std::vector<std::vector<Observed>> unsaved;
  lens::observe(runs, texts, how, [&](std::vector<Observed>&& observed) {
    if (!saves) return show(observed);
    for (Observed& run : observed) {
      if (!patterns && std::ssize(unsaved) >= on_page) run.patterns.clear();
      if (!arrays) run.position_vectors.clear();
    }
    unsaved.push_back(std::move(observed));
    return true;
  });
  if (saves) save_activations(options, runs, unsaved);
  for (const std::vector<Observed>& observed : unsaved) show(observed);
}

}  // namespace infer
