// Many texts observed as one: means over texts, and what only many texts can tell.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>

#include "lens/study/baseline.h"
#include "lens/study/batch.h"

namespace phasor::internal {

/// What View::of_many reads, and the means that it adds to.
struct Many {
  const Subject& subject;
  std::span<const Input> inputs;
  const Request& request;
  const Stages& stages;
  Observed& means;
};

/// Texts, tokenized for each of one or two subjects: means of each run over all tokens, how far the
/// second run's states are from the first's, and how their losses differ. `each` gets every text by
/// itself; the first `with_patterns` have their patterns.
std::vector<Observed> observe_runs(
    std::span<const Subject> subjects, const std::string& file,
    std::span<const std::vector<Input>> inputs, const Request& request, const Stages& stages,
    size_t with_patterns = 0,
    const std::function<void(size_t side, size_t number, Observed&&)>& each = {});

/// Adds what untrained models show of the same texts to the runs of observe_runs().
void add_baseline(const Baseline& baseline, const std::string& file,
                  std::span<const std::vector<Input>> inputs, const Request& request,
                  const Stages& stages, std::vector<Observed>& runs);

/// Whether masked tokens can be scored; where not, why is noted under the views.
bool can_mask(Many& many, std::initializer_list<const char*> views);

/// The most tokens of a masked text: those of Request::max_tokens and, where a run cuts texts, of
/// the table of positions; 0: any number.
int64_t most_tokens(const Subject& subject, const Request& request);

/// Whether both were given the same tokens: the same ids, meaning the same pieces.
bool same_tokens(std::span<const Input> a, std::span<const Input> b);

}  // namespace phasor::internal
