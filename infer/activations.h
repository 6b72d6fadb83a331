// The activations of whole runs, as the named tensors of one file.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "infer/observation.h"

namespace infer {

/// For sequence i, counted through all batches: {i}.token_ids and {i}.position_ids (int32, [T]),
/// {i}.hidden_states.{l} [T, C] for l = 0 … L, {i}.attentions.{l} [H, T, T] for l = 0 … L − 1,
/// {i}.last_hidden_state [T, C], {i}.embedding [C]. Fractional positions are rounded.
void save_activations(const std::filesystem::path& path, std::span<const Batch> batches,
                      const std::map<std::string, std::string>& metadata);

}  // namespace infer
