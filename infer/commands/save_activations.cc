// The activations of whole runs, as the named tensors of one file.
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
      for (const auto& [hook, layer] : phasor::find_hooks(name, num_layers))
        points_.emplace(hook, layer);
    }
  }

  bool wants(Hook hook, int64_t layer) const override {
    return points_.empty() ? Trace::wants(hook, layer) : points_.contains({hook, layer});
  }

 private:
  std::set<std::pair<Hook, int64_t>> points_;  // empty: those of Trace
};

/// Named tensors, and what they borrow from.
class Tensors {
 public:
  /// Of the observed text number `number`, which is run once more.
  void add(const lens::Run& run, const Observed& text, size_t number,
           const std::vector<std::string>& hooks) {
    trace_ = &traces_.emplace_back(hooks, run.model().config().num_layers);
    const std::vector<int32_t> sequences[] = {text.tokens.ids};
    const phasor::Encoding& encoding =
        encodings_.emplace_back(phasor::internal::encode(run, sequences, *trace_));
    prefix_ = fmt::format("{}.{}{}", number, run.label, run.label.empty() ? "" : ".");
    add_ids(encoding[0]);
    hooks.empty() ? add_states(encoding[0], run.model()) : add_hooks();
    add_measured(text);
  }

  std::vector<SavedTensor> all;

 private:
  void add_ids(const phasor::Encoding::Sequence& text) {
    std::vector<int32_t>& rows = integers_.emplace_back();
    for (const float p : text.positions) rows.push_back(static_cast<int32_t>(std::lround(p)));
    add("token_ids", {text.num_tokens()}, text.token_ids);
    add("position_ids", {text.num_tokens()}, std::span<const int32_t>(rows));
  }

  /// The states and attentions under Transformers' names, and the text's vector, which models for
  /// other kinds of vectors lack.
  void add_states(const phasor::Encoding::Sequence& text, const phasor::Model& model) {
    for (int64_t l = 0; l <= trace_->num_layers(); ++l)
      add(fmt::format("hidden_states.{}", l), trace_->hidden_state(l));
    for (int64_t l = 0; l < trace_->num_layers(); ++l)
      add(fmt::format("attentions.{}", l), trace_->at(Hook::kPattern, l));
    const int64_t d_model = model.config().d_model;
    add("last_hidden_state", {text.num_tokens(), d_model}, text.hidden);
    if (!model.has_sentence()) return;
    const std::vector<float> vector = pool(text.hidden, d_model, model.sentence().pooling);
    copy("embedding", {std::ssize(vector)}, vector);
  }

  /// Under TransformerLens' names.
  void add_hooks() {
    for (const auto& [hook, layer] : phasor::find_hooks("all", trace_->num_layers()))
      if (trace_->has(hook, layer)) add(phasor::hook_path(hook, layer), trace_->at(hook, layer));
  }

  void add_measured(const Observed& text) {
    if (const int64_t values = std::ssize(text.position_vectors); values > 0)
      copy("position_vectors", {text.num_tokens, values / text.num_tokens}, text.position_vectors);
    for (size_t l = 0; l < text.position_means.size(); ++l) {
      copy(fmt::format("split.position.{}", l), {std::ssize(text.text_tokens), text.d_model},
           text.position_means[l]);
    }
  }

  template <typename T>
  void add(const std::string& name, std::vector<int64_t> shape, std::span<const T> values) {
    all.emplace_back(prefix_ + name, std::move(shape), values);
  }
  void add(const std::string& name, const phasor::Trace::Entry& entry) {
    add(name, entry.shape, std::span<const float>(entry.values));
  }
  template <typename Values>
  void copy(const std::string& name, std::vector<int64_t> shape, const Values& values) {
    const auto& floats = floats_.emplace_back(values.begin(), values.end());
    add(name, std::move(shape), std::span<const float>(floats));
  }

  std::deque<HookTrace> traces_;
  std::deque<phasor::Encoding> encodings_;
  std::deque<std::vector<float>> floats_;
  std::deque<std::vector<int32_t>> integers_;
  HookTrace* trace_ = nullptr;  // of the last run
  std::string prefix_;          // of the names of its tensors
};

std::map<std::string, std::string> metadata(const lens::Run& run, float first_position) {
  const phasor::PositionConfig& own = run.model().config().position;
  const std::string layout = phasor::internal::layout_name(own, run.options.positions);
  const bool replaced = layout != phasor::internal::layout_name(own, {});
  const int64_t first = replaced ? std::lround(first_position) : own.first_position;
  return {{"model", run.name},
          {"layout", layout},
          {"first_position", std::to_string(first)},
          {"precision", std::string(phasor::to_string(run.encoder->precision()))},
          {"version", PHASOR_VERSION}};
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
  if (!saves) return;
  Tensors tensors;
  for (size_t side = 0; side < runs.size(); ++side) {
    for (size_t number = 0; number < unsaved.size(); ++number)
      tensors.add(runs[side], unsaved[number][side], number, options.hooks);
  }
  save("--save", options.save, tensors.all, metadata(runs[0], unsaved[0][0].position_ids.at(0)));
  for (const std::vector<Observed>& observed : unsaved) show(observed);
}

}  // namespace infer
