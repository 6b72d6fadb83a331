// Logits = W·LN(f(V h + c)) + b, as in BERT; V, f and LN may be missing.

#include "engine/output_heads.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/linear.h"
#include "engine/norm.h"
#include "files/refuse.h"

namespace phasor::internal {

HeadScorer::HeadScorer(const ModelConfig& config, const dnnl::engine& engine,
                       const PackedHead& head)
    : d_model_(config.d_model), norm_eps_(config.norm_eps), engine_(engine), head_(head) {}

std::vector<float> HeadScorer::logits(const Threads& threads, std::span<const float> states) {
  const int64_t rows = std::ssize(states) / d_model_;
  if (rows * d_model_ != std::ssize(states)) {
    refuse<InvalidArgument>("{} values are no whole hidden states of width {}", states.size(),
                            d_model_);
  }
  if (rows == 0) return {};
  const int64_t padded = padded_rows(rows);  // so that few sizes are compiled
  std::vector<float> x(states.begin(), states.end());
  x.resize(padded * d_model_);
  const auto apply = [&](const PackedLinear& weights, std::optional<Activation> activation) {
    Linear map(engine_, padded, weights, threads.count());
    std::vector<float> y(padded * weights.out);
    map.run(threads, x.data(), weights, y.data(), scratchpad_.reserve_bytes(map.scratchpad_bytes()),
            activation);
    x = std::move(y);
  };
  if (head_.dense) apply(*head_.dense, head_.activation);
  if (head_.norm) layer_norm(threads, x.data(), rows, *head_.norm, norm_eps_, x.data());
  apply(head_.out, {});
  x.resize(std::ssize(x) / padded * rows);
  return x;
}

std::vector<float> probabilities(std::span<const float> logits, int64_t num_labels,
                                 ClassifierHead::Output output) {
  std::vector<float> result(logits.begin(), logits.end());
  if (output == ClassifierHead::Output::kIdentity) return result;
  for (auto row = result.begin(); row != result.end(); row += num_labels) {
    const auto end = row + num_labels;
    if (output == ClassifierHead::Output::kSigmoid) {
      std::transform(row, end, row, [](double x) { return 1 / (1 + std::exp(-x)); });
      continue;
    }
    if (output == ClassifierHead::Output::kTanh) {
      std::transform(row, end, row, [](double x) { return std::tanh(x); });
      continue;
    }
    const double largest = *std::max_element(row, end);
    double sum = 0;
    for (auto x = row; x != end; ++x) sum += std::exp(*x - largest);
    std::transform(row, end, row, [&](double x) { return std::exp(x - largest) / sum; });
  }
  return result;
}

}  // namespace phasor::internal
