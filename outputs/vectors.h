// Encoder::embed(): texts run once, and become vectors of the kinds that are asked for.
#pragma once

#include <span>
#include <string_view>

#include "outputs/texts.h"

namespace phasor::internal {

/// As Encoder::embed(); the options are checked.
Vectors embed(const Runner& runner, std::span<const std::string_view> texts,
              const TextOptions& options);

/// How dense vectors are pooled. Throws what Model::sentence() throws if it is used, and
/// InvalidArgument for more dimensions than there are, and for widths below 1 and above 2^24.
Pooling pooling_of(const TextOptions& options, const Model& model);

/// A pooled vector of each text of a batch, end to end, on `threads`.
std::vector<float> pool_texts(const TextStates& batch, int64_t d_model, const Pooling& pooling,
                              const Threads& threads);
/// Which states this pooling reads, where it reads one.
ReadStates read_by(const Pooling& pooling);

}  // namespace phasor::internal
