// Texts observed one by one, and what their runs computed, in a file.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "infer/cli/input_options.h"

namespace infer {

/// Observes texts and gives each to `show`, in order. With options.save it first runs each text in
/// every run once more, and writes the activations with save(), so that a failed write prints only
/// its error. The names of text n's tensors begin with "{n}." or, where runs have labels,
/// "{n}.{label}.":
///
///     token_ids, position_ids       [T], int32; fractional positions are rounded
///     hidden_states.{l}             [T, C], l = 0 … L
///     attentions.{l}                [H, T, T], l = 0 … L − 1
///     last_hidden_state, embedding  [T, C], [C]
///
/// With options.hooks it has the tensors of these in place of the states and attentions. A hook is
/// named by its path ("blocks.0.hook_mlp_out") or the end of one ("hook_mlp_out", "mlp_out": of
/// every block); "all" is every hook. Throws InvalidArgument for a name that no hook of the model
/// has.
///
/// Also writes split.position.{l} [positions, C] of what was observed, if present, and with
/// `arrays` position_vectors [T, E].
void observe_and_save(const InputOptions& options, std::span<const lens::Run> runs,
                      std::span<const lens::Text> texts, lens::ObserveOptions how, bool arrays,
                      const std::function<bool(const std::vector<Observed>&)>& show);

}  // namespace infer
