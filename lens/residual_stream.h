// The residual stream of a recorded run as a sum of parts, with frozen norms.
#pragma once

#include <span>
#include <vector>

#include "phasor/lens/residual.h"

namespace phasor::internal {

/// A residual stream [T, C] as the list of parts that it is the sum of; [T, E] until the embedding
/// map. Borrows the model and the trace, and throws InvalidArgument where one is not of the other.
class ResidualStream {
 public:
  ResidualStream(const Model& model, const Trace& trace, int64_t sequence);

  /// To hidden_states[0]: token, position and type join, the embedding's norm and map follow.
  void embed();

  /// What the trace holds.
  std::span<const float> values(Hook hook, int64_t layer) const {
    return trace_.at(hook, layer, sequence_).values;
  }
  /// Joins the stream.
  void add(ResidualSource source, Hook hook, int64_t layer);
  /// Forgets all that came before: a residual connection was cut.
  void cut();
  /// The norm with the statistics of `run`, the input it had in the run: [T, width].
  void normalize(const NormWeights& norm, std::span<const double> run);
  void normalize(const NormWeights& norm, std::span<const float> run);

  int64_t num_tokens() const { return num_tokens_; }
  /// The biases first, and always.
  std::span<const ResidualPart> parts() const { return parts_; }

 private:
  void start(int64_t width);
  void add_if_there(ResidualSource source, Hook hook);
  void map(const LinearWeights& weights);  // [T, E] to [T, C]
  void add_bias(const Tensor& tensor);
  std::vector<double> sum() const;
  double mean(std::span<const double> row) const;
  double deviation(std::span<const double> row) const;
  void normalize_row(std::span<double> row, double scale, std::span<const float> weight) const;

  const Model& model_;
  const ModelConfig& config_;
  const Trace& trace_;
  int64_t sequence_;
  int64_t num_tokens_ = 0;
  std::vector<ResidualPart> parts_;
};

}  // namespace phasor::internal
