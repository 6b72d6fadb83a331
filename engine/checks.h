// Checks before and after a run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/batch.h"
#include "phasor/run.h"

namespace phasor::internal {

/// Throws InvalidArgument for an empty batch, offsets that do not divide the ids into sequences of
/// at least one token, or a token id outside the vocabulary.
void check_batch(const TokenBatch& batch, const ModelConfig& config);

/// Throws InvalidArgument for types that are not one for each token, or no row of `table`.
void check_token_types(const TokenBatch& batch, const Tensor& table);

/// Throws InvalidArgument for options that cannot apply to this model and batch.
void check_run(const RunOptions& options, int64_t num_sequences, const ModelConfig& config);

/// Whether no value is NaN or infinite.
bool all_finite(std::span<const float> values);

/// If a hidden state is NaN or infinite, throws ModelError if an embedding of the model is the
/// cause, and otherwise InvalidArgument, because then the run's positions are.
void check_finite(std::span<const float> hidden, const Model& model);

/// If a logit of the head ("classification") is NaN or infinite, throws ModelError: the head's
/// finite weights are too large.
void check_finite_logits(std::span<const float> logits, std::string_view head);

/// A tensor's values as float32, none of them NaN or infinite: the tensor's memory, which is
/// borrowed, or a widened copy. Empty if the tensor is absent.
class FiniteValues {
 public:
  /// Throws ModelError naming the tensor if a value is NaN or infinite.
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
