// One batch, run with positions and without, and what that says about each of its sequences.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "infer/input.h"
#include "phasor/encoder.h"
#include "phasor/trace.h"

namespace infer {

/// What happens to position in hidden_states[l].
struct LayerReport {
  double norm = 0;                           // mean norm of the residual stream
  double position_effect = 0;                // mean 1 − cos to the same states without positions
  std::optional<double> attention_distance;  // of block l − 1, in tokens; none for l = 0
};

/// Attention of one layer, added up over patterns.
class AttentionSum {
 public:
  /// A pattern [H, T, T].
  void add(std::span<const float> pattern, int64_t num_heads, int64_t num_tokens);
  void add(const AttentionSum& other);
  /// a(δ) of phasor::attention_by_offset(), the mean over all rows; empty where nothing was added.
  std::map<int64_t, double> by_offset() const;
  /// Σ_δ a(δ)·|δ|, in tokens.
  double distance() const;

 private:
  std::map<int64_t, double> sums_;  // by offset
  double rows_ = 0;
};

struct Filler {
  int32_t id = 0;
  double probability = 0;
};

/// The likeliest tokens for one masked token.
struct MaskReport {
  int64_t token = 0;  // index in the sequence
  std::vector<Filler> fillers;
};

/// The hooks of all hidden states.
phasor::Trace hidden_states();

/// Listens to the run with positions. Attention is summed up on the way, so that the patterns
/// (4·H·T² bytes a layer) are kept only where `trace` wants them.
class Observation : public phasor::Observer {
 public:
  /// `trace` wants at least hidden_states().
  explicit Observation(phasor::Trace trace) : trace_(std::move(trace)) {}
  bool wants(phasor::Hook hook, int64_t layer) const override;
  void observe(const phasor::HookEvent& event) override;

  const phasor::Trace& trace() const { return trace_; }
  /// Over heads and rows; a row of several windows counts once for each.
  const AttentionSum& attention(int64_t layer, int64_t sequence) const {
    return attention_.at({layer, sequence});
  }

 private:
  phasor::Trace trace_;
  std::map<std::pair<int64_t, int64_t>, AttentionSum> attention_;  // layer, sequence
};

struct Batch {
  phasor::Encoding encoding;
  Observation observation;
  phasor::Trace without;  // hidden states of the run whose positions were taken away
};

/// Runs the batch twice, and keeps what `trace` wants of the first run. `options.observer` is not
/// used.
Batch observe(phasor::Encoder& encoder, std::span<const Input> inputs,
              const phasor::RunOptions& options, phasor::Trace trace = hidden_states());

/// l = 0 … L, of sequence i.
std::vector<LayerReport> layer_reports(const Batch& batch, int64_t d_model, int64_t i);

/// The five likeliest fillers of every masked token of sequence i; none without an MLM head or a
/// mask token.
std::vector<MaskReport> mask_reports(phasor::Encoder& encoder, const Batch& batch, int64_t i);

}  // namespace infer
