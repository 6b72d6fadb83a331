// A head's maps, one after the other: W·LN(f(V h + c)) + b in BERT.

#include "engine/output_heads.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/fork.h"
#include "engine/linear.h"
#include "engine/memory.h"
#include "engine/norm.h"
#include "files/refuse.h"

namespace phasor::internal {

OutputHeads::~OutputHeads() {
  for (const auto& head : heads_) delete head.load();
}

const PackedHead& OutputHeads::get(Head which, const Model& model, const dnnl::engine& engine,
                                   const PackedWeights& beside) {
  std::atomic<const PackedHead*>& head = heads_[static_cast<size_t>(which)];
  if (head == nullptr) {
    const NoFork no_fork;
    const std::lock_guard lock(mutex_);
    if (head == nullptr)
      head = new PackedHead(pack_head(which, model, engine, beside.bytes() + bytes()));
  }
  return *head;
}

int64_t OutputHeads::bytes() const {
  int64_t bytes = 0;
  for (const PackedHead* const head : heads_) bytes += head != nullptr ? head->arena.bytes() : 0;
  return bytes;
}

std::vector<float> run_head(const PackedHead& head, const ModelConfig& config,
                            const dnnl::engine& engine, const Threads& threads,
                            std::span<const float> states) {
  const int64_t width = config.d_model, rows = std::ssize(states) / width;
  if (rows * width != std::ssize(states)) {
    refuse<InvalidArgument>("{} values are no whole hidden states of width {}", states.size(),
                            width);
  }
  if (rows == 0) return {};
  const int64_t padded = padded_rows(rows);  // so that few sizes are compiled
  std::vector<float> x(states.begin(), states.end());
  x.resize(padded * width);
  ScratchBuffer scratchpad;
  for (const auto& [norm, linear, activation] : head.maps) {
    if (norm) layer_norm(threads, nullptr, x.data(), rows, *norm, config.norm_eps, x.data());
    Linear map(engine, padded, linear, threads.count());
    std::vector<float> y(padded * linear.out);
    map.run(threads, x.data(), linear, y.data(), scratchpad.reserve_bytes(map.scratchpad_bytes()),
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
