// Many texts observed as one: means over texts, and what only many texts can tell.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "lens/study/batch.h"
#include "lens/study/masked.h"

namespace phasor::internal {

/// Means, and what was made of each masked token.
struct Measured : Observed {
  MaskedScore masked = {};
};

/// What Measure::of_many reads, and the means that it adds to.
struct Many {
  const lens::Run& subject;
  std::span<const std::vector<int32_t>> sequences;  // the texts' tokens
  const Request& request;
  const Stages& stages;
  Measured& means;
};

/// The means of texts in each run, and what only many texts tell. `take` as observe_means() has it.
std::vector<Measured> means_of(std::span<const lens::Run> runs, std::span<const lens::Text> texts,
                               const lens::ObserveOptions& options, const Stages& stages = {},
                               const lens::TakeText& take = {});

/// Whether masked tokens can be scored; where not, why is noted under the views.
bool can_mask(Many& many, std::initializer_list<const char*> views);

/// The most tokens of a masked text: those of Request::max_tokens and, where a run cuts texts, of
/// the table of positions; 0: any number.
int64_t most_tokens(const lens::Run& subject, const Request& request);

}  // namespace phasor::internal
