// What the encoder's tests share: small models, token ids, and a recorder of hooks.
#pragma once

#include "tests/support/random_model.h"
#include "tests/support/test.h"

namespace phasor {

using TokenIds = std::vector<int32_t>;

inline constexpr KernelLibrary kKernels[] = {KernelLibrary::kOwn, KernelLibrary::kOneDnn};

/// Post-norm, 3 heads of 5, two layers: change what the test is about.
ModelConfig small_config(const PositionConfig& position = {});
/// small_config() with sinusoidal positions.
ModelConfig sinusoidal_config(NormOrder order);

/// Every choice of a configuration drawn from `seed`, with sizes that are no multiple of 16. From
/// kFirstScorePositionsSeed on also rotary and disentangled positions, local windows, and a first
/// block without its norm, from kFirstBlocksSeed on also grouped and normed queries, a causal mask,
/// norms of branches and capped scores.
inline constexpr uint64_t kFirstScorePositionsSeed = 61, kFirstBlocksSeed = 121;
std::shared_ptr<const Model> drawn_model(uint64_t seed);

/// `count` ids below the model's vocab_size.
TokenIds random_ids(const Model& model, int64_t count, uint64_t seed);

/// Position vectors that are drawn, of 18 numbers.
inline constexpr int64_t kTableWidth = 18;
PositionTable drawn_table(int64_t rows, uint64_t seed = 62);

/// Keeps every event in the order it came.
class Recorder : public Observer {
 public:
  struct Event {
    Hook hook;
    int64_t layer, sequence, first_token;
    std::vector<int64_t> shape;
    std::vector<float> values;
  };

  /// Keeps `hooks`; all where there are none.
  explicit Recorder(std::vector<Hook> hooks = {}) : hooks_(std::move(hooks)) {}

  bool wants(Hook hook, int64_t layer) const override;
  void observe(const HookEvent& event) override;

  const std::vector<Event>& events() const { return events_; }
  /// The first event of this kind; fails the test where there is none.
  const std::vector<float>& values(Hook hook, int64_t layer = -1, int64_t sequence = 0) const;

 private:
  std::vector<Hook> hooks_;
  std::vector<Event> events_;
};

/// What a run of these token ids leaves in a trace.
template <typename Ids>
Trace recorded(Encoder& encoder, const Ids& ids, Trace trace, RunOptions options = {}) {
  options.observer = &trace;
  encoder.encode_ids(ids, options);
  return trace;
}
template <typename Ids>
Trace recorded(const std::shared_ptr<const Model>& model, const Ids& ids, Trace trace,
               const RunOptions& options = {}) {
  Encoder encoder(model);
  return recorded(encoder, ids, std::move(trace), options);
}

/// Changes what passes one hook in one block.
class Editor : public Observer {
 public:
  using Edit = std::function<void(const HookEvent&, std::span<float>)>;
  Editor(Hook hook, int64_t layer, Edit edit)
      : hook_(hook), layer_(layer), edit_(std::move(edit)) {}

  bool wants(Hook, int64_t) const override { return false; }
  void observe(const HookEvent&) override;
  bool changes(Hook hook, int64_t layer) const override { return hook == hook_ && layer == layer_; }
  void change(const HookEvent& event, std::span<float> values) override;
  int calls = 0;

 private:
  Hook hook_;
  int64_t layer_;
  Edit edit_;
};

/// Models for what must hold in every one: drawn ones of all kinds, and the bundled ones, by name.
std::vector<std::pair<std::string, std::shared_ptr<const Model>>> exact_models();

/// Runs `sequences` in one batch through engine and oracle, with both kinds of kernels, and
/// compares ids, positions, hidden states and every hook, each to 1e-4 of its largest value.
void expect_matches_reference(const std::shared_ptr<const Model>& model,
                              const std::vector<TokenIds>& sequences, RunOptions options = {});

}  // namespace phasor
