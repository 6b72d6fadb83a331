// The activations of whole runs, as the named tensors of one file.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "infer/input.h"
#include "phasor/encoder.h"
#include "phasor/trace.h"

namespace infer {

/// A batch that was run, and what passed the hooks that are to be saved.
struct Recording {
  phasor::Encoding encoding;
  phasor::Trace trace;
};

/// `options.observer` is not used.
Recording record(phasor::Encoder& encoder, std::span<const Input> inputs,
                 phasor::RunOptions options, phasor::Trace trace);

/// For sequence i, counted through all batches: {i}.token_ids and {i}.position_ids (int32, [T]),
/// {i}.hidden_states.{l} [T, C] for l = 0 … L, {i}.attentions.{l} [H, T, T] for l = 0 … L − 1,
/// {i}.last_hidden_state [T, C], {i}.embedding [C]. Fractional positions are rounded.
void save_activations(const std::filesystem::path& path, std::span<const Recording> recordings,
                      const std::map<std::string, std::string>& metadata);

}  // namespace infer
