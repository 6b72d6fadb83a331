// Observing texts: a batch of them, run as asked and in every other way that its measures need.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "infer/observed.h"
#include "phasor/encoder.h"

namespace infer {

/// A model and how it is run.
struct Subject {
  std::string name;          // of the model
  phasor::Encoder& encoder;  // borrowed
  phasor::RunOptions options = {};
  std::vector<std::string> edits = {};  // of options.positions, as the user wrote them

  const phasor::Model& model() const { return encoder.model(); }
};

struct Request {
  std::vector<Measure> measures;
  uint64_t seed = 1;      // for what is drawn, of the first text; the next one has the next number
  bool states = false;    // keep them in Observed::states
  bool patterns = false;  // and these; 4·H·T² bytes a layer

  bool asks(Measure measure) const;
};

/// Observes the inputs as one batch. `options.observer` is not used. Throws what encoding throws.
std::vector<Observed> observe_texts(const Subject& subject, std::span<const Input> inputs,
                                    const Request& request);

/// The hooks of all hidden states.
phasor::Trace hidden_states();

/// "1.attn", "2.mlp", "3": the residual connections that a run cuts, counting layers from 1.
std::vector<std::string> describe_cuts(std::span<const phasor::ResidualCut> cuts);

}  // namespace infer
