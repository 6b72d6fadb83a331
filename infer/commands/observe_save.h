// What infer observe saves: the activations of its runs, and the arrays that it measured.
#pragma once

#include <optional>
#include <span>

#include "infer/cli/text_options.h"
#include "infer/experiment/observation.h"
#include "infer/experiment/observed_pair.h"

namespace infer {

/// Writes options.save. For text i of the only run the tensors of Activations::add() as {i}.…, and
/// {i}.position_vectors [T, E] and {i}.split.position.{l} [text tokens, C], the position means of
/// the split of hidden_states[l]. With interventions {i}.before.… and {i}.after.…
void save_observed(const TextOptions& options, const Runs& runs, std::span<const Input> inputs,
                   std::span<const ObservedPair> pairs);

}  // namespace infer
