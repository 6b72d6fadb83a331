// What is checked before a run and after it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "phasor/encoder.h"

namespace phasor {

/// Throws InvalidArgument for an empty batch, an empty sequence, or a token id that is not in the
/// vocabulary.
void check_batch(std::span<const std::vector<int32_t>> sequences, const ModelConfig& config);

/// Throws InvalidArgument for options that cannot apply to this model and batch.
void check_run(const RunOptions& options, int64_t num_sequences, const ModelConfig& config);

/// Where a hidden state is NaN or infinite: throws ModelError naming the tensor that is to blame,
/// or InvalidArgument where none is and so the run's positions are.
void check_finite(std::span<const float> hidden, const Model& model);

}  // namespace phasor
