// The residual stream of a recorded run as a sum of parts, with frozen norms.
#pragma once

#include <span>
#include <vector>

#include "phasor/lens/residual.h"

namespace phasor::internal {

/// √(variance + ε) of a norm's input.
double deviation(const ModelConfig& config, std::span<const double> row);
/// Why attention's scores are no sum of products of the parts of states; empty where they are.
std::string why_no_score_terms(const ModelConfig& config);
/// Throws InvalidArgument that says so.
void check_score_terms(const ModelConfig& config);
/// The norm of a row, or of one of the parts that it is the sum of, without the bias: `scale` is
/// 1/deviation() of the whole row.
void normalize_row(const ModelConfig& config, std::span<double> row, double scale,
                   std::span<const float> weight);

/// A residual stream [T, C] as a list of parts whose sum it is; [T, E] until the embedding map.
/// Borrows the model and the trace, and throws InvalidArgument if they do not belong together.
class ResidualStream {
 public:
  ResidualStream(const Model& model, const Trace& trace, int64_t sequence);

  /// Computes hidden_states[0]: adds token, position and type, then applies the embedding's norm
  /// and map. Where `share` [T, E] is given, it is taken out of the position, and a part of its
  /// own.
  void embed(std::span<const float> share = {});

  /// The trace's entry.
  std::span<const float> values(Hook hook, int64_t layer) const {
    return trace_.at(hook, layer, sequence_).values;
  }
  /// Adds a part.
  void add(ResidualSource source, Hook hook, int64_t layer);
  /// Takes shares of the part that was added last, one for each head, out of it.
  void split_last(const std::vector<std::vector<float>>& heads);
  /// Drops all earlier parts: a residual connection was cut.
  void cut();
  /// Applies the norm, if there is one, with the statistics of `run`, its input in the run: [T,
  /// width].
  void normalize(const NormWeights& norm, std::span<const double> run);
  void normalize(const NormWeights& norm, std::span<const float> run);

  int64_t num_tokens() const { return num_tokens_; }
  /// The biases are first, and always present.
  std::span<const ResidualPart> parts() const { return parts_; }

 private:
  void start(int64_t width);
  void add_if_there(ResidualSource source, Hook hook);
  void map(const LinearWeights& weights);  // [T, E] to [T, C]
  void add_bias(const Tensor& tensor);
  std::vector<double> sum() const;

  const Model& model_;
  const ModelConfig& config_;
  const Trace& trace_;
  int64_t sequence_;
  int64_t num_tokens_ = 0;
  std::vector<ResidualPart> parts_;
};

}  // namespace phasor::internal
