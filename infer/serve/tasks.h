// What a server's engines do with texts, and what it takes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "phasor/encoder.h"

namespace infer {

class ModelQueue;

/// Texts that run together.
struct Batch {
  std::vector<std::string_view> first = {};  // of pairs; empty: there are none
  std::vector<std::string_view> texts = {};
  phasor::TextOptions options = {};
};

/// A row of kTasks.
struct Task {
  /// Is given the arrays of results, and of how many of the batch's texts, one after the other.
  using Take = std::function<void(const std::vector<phasor::ResultArray>& made, size_t texts)>;
  void (*run)(phasor::Encoder& encoder, const Batch& batch, const Take& take);
  uint32_t uses = 0;  // of options; 0: nothing runs on the engine, so that its speed is not learnt
  /// The most bytes of the results of a text of so many tokens, in the batch and behind it, and of
  /// their JSON; where this has a text's words in it or few of the results, it counts as it grows.
  int64_t (*bytes)(const ModelQueue& queue, const phasor::TextOptions& options, int64_t tokens);
  /// To how many tokens a text is cut; null: to ModelQueue::max_tokens().
  int64_t (*longest)(const ModelQueue& queue, const phasor::TextOptions& options) = nullptr;
  bool in_windows = false;  // nothing is cut
};

/// All.
struct Tasks {
  Task embed, states, sparse, tokens;
  Task classify;  // of texts or pairs
  Task rank_by_tokens;
  Task label;
  Task tokenize;  // waits its turn, and is done with the answer
};
extern const Tasks kTasks;

}  // namespace infer
