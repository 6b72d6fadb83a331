// A head's maps, one after the other: W·LN(f(V h + c)) + b in BERT.

#include "engine/output_heads.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/linear.h"
#include "engine/norm.h"
#include "files/refuse.h"

namespace phasor::internal {

HeadRunner::HeadRunner(const ModelConfig& config, const dnnl::engine& engine,
                       const PackedHead& head)
    : d_model_(config.d_model), norm_eps_(config.norm_eps), engine_(engine), head_(head) {}

std::vector<float> HeadRunner::run(const Threads& threads, std::span<const float> states) {
  const int64_t rows = std::ssize(states) / d_model_;
  if (rows * d_model_ != std::ssize(states)) {
    refuse<InvalidArgument>("{} values are no whole hidden states of width {}", states.size(),
                            d_model_);
  }
  if (rows == 0) return {};
  const int64_t padded = padded_rows(rows);  // so that few sizes are compiled
  std::vector<float> x(states.begin(), states.end());
  x.resize(padded * d_model_);
  for (const auto& [norm, linear, activation] : head_.maps) {
    if (norm) layer_norm(threads, nullptr, x.data(), rows, *norm, norm_eps_, x.data());
    Linear map(engine_, padded, linear, threads.count());
    std::vector<float> y(padded * linear.out);
    map.run(threads, x.data(), linear, y.data(), scratchpad_.reserve_bytes(map.scratchpad_bytes()),
            activation);
    x = std::move(y);
  }
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
