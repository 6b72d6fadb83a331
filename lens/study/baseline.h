// What untrained models of the same architecture show: what does not follow from training.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <vector>

#include "lens/study/observed.h"
#include "lens/study/subject.h"

namespace phasor::internal {

/// Stands beside some subjects: the same runs of Model::untrained() models, drawn from several
/// seeds.
class Baseline {
 public:
  /// Seeds 1 … `seeds`. Subjects that share an encoder share its untrained models, too. Borrows the
  /// subjects' encoders.
  Baseline(std::span<const Subject> subjects, int64_t seeds, int threads);

  /// The subjects of each seed: [seeds] of [subjects].
  const std::vector<std::vector<Subject>>& subjects() const { return subjects_; }

 private:
  std::list<Encoder> encoders_;
  std::vector<std::vector<Subject>> subjects_;
};

/// The same text, or texts, in runs of several seeds as one run: the mean of every number over the
/// seeds, and from the least to the most. Without arrays.
Observed over_seeds(std::span<const Observed> seeds);

}  // namespace phasor::internal
