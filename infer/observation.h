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

struct Filler {
  int32_t id = 0;
  double probability = 0;
};

/// The likeliest tokens for one masked token.
struct MaskReport {
  int64_t token = 0;  // index in the sequence
  std::vector<Filler> fillers;
};

/// Listens to the run with positions. Attention's distance is summed up on the way, so that the
/// patterns (4·H·T² bytes a layer) are kept only where they are to be saved.
class Observation : public phasor::Observer {
 public:
  explicit Observation(bool keep_patterns);
  bool wants(phasor::Hook hook, int64_t layer) const override;
  void observe(const phasor::HookEvent& event) override;

  const phasor::Trace& trace() const { return trace_; }
  /// Mean over heads and rows; a row of several windows counts once for each.
  double attention_distance(int64_t layer, int64_t sequence) const;

 private:
  struct Sum {
    double distance = 0;
    double rows = 0;
  };
  bool keep_patterns_;
  phasor::Trace trace_;
  std::map<std::pair<int64_t, int64_t>, Sum> distances_;  // layer, sequence
};

struct Batch {
  phasor::Encoding encoding;
  Observation observation;
  phasor::Trace without;  // hidden states of the run whose positions were taken away
};

/// Runs the batch twice. `options.observer` is not used.
Batch observe(phasor::Encoder& encoder, std::span<const Input> inputs,
              const phasor::RunOptions& options, bool keep_patterns);

/// l = 0 … L, of sequence i.
std::vector<LayerReport> layer_reports(const Batch& batch, int64_t d_model, int64_t i);

/// The five likeliest fillers of every masked token of sequence i; none without an MLM head or a
/// mask token.
std::vector<MaskReport> mask_reports(phasor::Encoder& encoder, const Batch& batch, int64_t i);

}  // namespace infer
