// What is checked before a run and after it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/batch.h"
#include "phasor/encoder.h"

namespace phasor::internal {

/// Throws InvalidArgument for an empty batch, offsets that do not divide the ids into sequences of
/// at least one token, or a token id that is not in the vocabulary.
void check_batch(const TokenBatch& batch, const ModelConfig& config);

/// Throws InvalidArgument for options that cannot apply to this model and batch.
void check_run(const RunOptions& options, int64_t num_sequences, const ModelConfig& config);

/// Where a hidden state is NaN or infinite: throws ModelError where an embedding of the model is to
/// blame, or InvalidArgument where none is and so the run's positions are.
void check_finite(std::span<const float> hidden, const Model& model);

/// A tensor's values as float32, none of them NaN or infinite: where they lie, or else a widened
/// copy. Empty where the tensor is absent. Borrows the tensor's memory.
class FiniteValues {
 public:
  /// Throws ModelError naming the tensor where a value is NaN or infinite.
  FiniteValues(const std::string& name, const Tensor& tensor);
  FiniteValues(const FiniteValues&) = delete;
  FiniteValues& operator=(const FiniteValues&) = delete;

  std::span<const float> get() const { return values_; }

 private:
  std::vector<float> copy_;
  std::span<const float> values_;
};

/// The same as a copy.
std::vector<float> read_finite(const std::string& name, const Tensor& tensor);

}  // namespace phasor::internal
