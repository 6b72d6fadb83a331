// What a server's engines do with texts, and what it takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "phasor/encoder.h"

namespace infer {

class ModelQueue;
struct Work;

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
  uint32_t uses = 0;  // of options; 0: nothing runs on the engine
  /// The most bytes of a text's results and of their JSON. Of an answer that repeats words of its
  /// texts, or shows few of its results, the bytes are counted as it grows.
  int64_t (*bytes)(const ModelQueue& queue, const Work& work, size_t text);
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

/// To how many tokens a text is cut; /predict_tokens runs all of it, in windows of so many.
int64_t longest(const ModelQueue& queue, const Work& work);

/// About how many tokens of a text are run, as batches count them.
int64_t about_tokens(const ModelQueue& queue, const Work& work, size_t text);

/// The most bytes that a request takes: its texts, their results and, as far as they tell it, the
/// answer.
int64_t most_bytes(const ModelQueue& queue, const Work& work);

}  // namespace infer
