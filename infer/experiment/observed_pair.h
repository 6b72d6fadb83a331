// What is known about one text before and after interventions.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "infer/experiment/deviation.h"
#include "infer/experiment/observed.h"

namespace infer {

struct ObservedPair {
  Observed before;                // or the only run
  std::optional<Observed> after;  // with the interventions
  /// How far the hidden states after are from those before, [L + 1]; empty without `after`.
  std::vector<Deviation> moved = {};
};

/// Both of the same text, observed with Request::states; takes the states off them.
ObservedPair make_pair(Observed before, Observed after);

/// Calls visit(run, observed) for each of the one or two.
template <typename Visit>
void for_each_run(const ObservedPair& pair, Visit visit) {
  visit("before", pair.before);
  if (pair.after) visit("after", *pair.after);
}

/// That of the only run, or {"before": …, "after": …, "moved": […]}.
nlohmann::ordered_json to_json(const ObservedPair& pair);

/// Every number in a line of its own: text,run,layer,head,measure,value. Texts, layers and heads
/// count from 1, layer 0 is the embedding, and what is not of a layer or head leaves it empty; a
/// measure is its path in the JSON.
std::string csv_head();
std::string to_csv(const ObservedPair& pair, size_t number);

}  // namespace infer
