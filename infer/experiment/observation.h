// Observing texts: a batch of them, run as asked and in every other way that its measures need.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "infer/cli/progress.h"
#include "infer/experiment/observed.h"
#include "infer/experiment/subject.h"

namespace infer {

struct Request {
  std::vector<Measure> measures = {};
  uint64_t seed = 1;      // for what is drawn, of the first text; the next one has the next number
  bool states = false;    // keep them in Observed::states,
  bool patterns = false;  // these (4·H·T² bytes a layer),
  bool arrays = false;    // and the split's position_means

  bool asks(Measure measure) const;
};

/// Observes the inputs as one batch. `options.observer` is not used. Throws what encoding throws.
std::vector<Observed> observe_texts(const Subject& subject, std::span<const Input> inputs,
                                    const Request& request, Progress& progress);

/// A split without its arrays.
ObservedSplit summary_of(const phasor::Split& split, int64_t d_model);

}  // namespace infer
