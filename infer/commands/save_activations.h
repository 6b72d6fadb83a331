// The activations of whole runs, as the named tensors of one file.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "infer/cli/text_options.h"
#include "lens/study/text.h"

namespace infer {

/// Runs the texts of `observed`, [texts] of [runs], as each run says and writes a file, as save()
/// does. The names of text n's tensors begin with "{n}." or, where runs have labels,
/// "{n}.{label}.":
///
///     token_ids, position_ids       [T], int32; fractional positions are rounded
///     hidden_states.{l}             [T, C], l = 0 … L
///     attentions.{l}                [H, T, T], l = 0 … L − 1
///     last_hidden_state, embedding  [T, C], [C]
///
/// With `hooks` it has the tensors of these in place of the states and attentions. A hook is named
/// by its path ("blocks.0.hook_mlp_out") or the end of one ("hook_mlp_out", "mlp_out": of every
/// block); "all" is every hook. Throws InvalidArgument for a name that no hook of the model has.
///
/// Of what was observed position_vectors [T, E] and split.position.{l} [positions, C] are written,
/// where they are known.
void save_activations(const std::filesystem::path& path, const std::vector<std::string>& hooks,
                      std::span<const lens::Run> runs,
                      std::span<const std::vector<Observed>> observed);

/// Observes texts and gives each to `show`, in order; with options.save after the file has been
/// written, so that the error stands alone where it cannot be. `arrays` are written, too.
void observe_and_save(const TextOptions& options, std::span<const lens::Run> runs,
                      std::span<const lens::Text> texts, lens::ObserveOptions how, bool arrays,
                      const std::function<bool(const std::vector<Observed>&)>& show);

}  // namespace infer
